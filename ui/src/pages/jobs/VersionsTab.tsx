import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { client, data, tagged } from "~/api/client";
import { asApiError } from "~/api/problems";
import { key, queryClient } from "~/api/queries";
import type { JobVersionShown } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { AskDialog, Dialog } from "~/components/Dialog";
import { EmptyState } from "~/components/EmptyState";
import { ErrorNotice } from "~/components/ErrorNotice";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { toast } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { changesBetween, type FieldChange, threeVersions } from "~/model/versionDiff";
import { fieldName, words } from "~/texts/versions";
import type { Job } from "./queries";
import styles from "./VersionsTab.module.css";

type Version = JobVersionShown;
const PAGE = 50;
const named = (reference: string) => ({ params: { path: { reference } } });

function useVersions(reference: string) {
  return useInfiniteQuery({
    queryKey: key("job", reference, "versions"),
    initialPageParam: undefined as number | undefined,
    queryFn: ({ pageParam }) => data(client.GET("/v1/jobs/{reference}/versions", { params: { path: { reference }, query: { limit: PAGE, ...(pageParam === undefined ? {} : { before: pageParam }) } } })),
    getNextPageParam: (page) => page.next ?? undefined,
  });
}

function restore(reference: string, version: number | undefined, etag: string | null) {
  return data(client.POST("/v1/jobs/{reference}/restore", { params: { path: { reference }, header: (etag ? { "If-Match": etag } : {}) as never }, body: { ...(version === undefined ? {} : { version }) } }));
}

/** Who changed what, and the way back. */
export function VersionsTab({ job, etag }: { job: Job; etag: string | null }) {
  const found = useVersions(job.id);
  useLiveRefresh(() => void found.refetch(), { every: 5_000 });
  const mayOperate = useMay("operate");
  const [chosen, setChosen] = useState<{ version: Version; etag: string | null; seen: Version } | null>(null);
  if (found.error && !found.data) return <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={5} />;
  const items = found.data.pages.flatMap((page) => page.items);
  const current = items[0];
  return (
    <>
      <VersionList
        name={job.name}
        items={items}
        isWhole={!found.hasNextPage}
        isCurrent={(version) => version.version === job.version}
        onRestore={mayOperate && current ? (version) => setChosen({ version, etag, seen: current }) : null}
      />
      {found.hasNextPage && (
        <Button onClick={() => void found.fetchNextPage()} isBusy={found.isFetchingNextPage}>
          {words.more}
        </Button>
      )}
      {chosen && <RestoreDialog key={chosen.version.version} job={job} {...chosen} onClose={() => setChosen(null)} />}
    </>
  );
}

function VersionList({ name, items, isWhole, isCurrent, onRestore }: { name: string; items: readonly Version[]; isWhole: boolean; isCurrent: (version: Version) => boolean; onRestore: ((version: Version) => void) | null }) {
  return (
    <ol className={styles.list} aria-label={words.label(name)}>
      {items.map((version, index) => {
        const before = items[index + 1];
        return (
          <li key={version.version}>
            <div className={styles.head}>
              <h2>{words.number(version.version)}</h2>
              {isCurrent(version) && <span className={styles.current}>{words.current}</span>}
              <span className={styles.who}>
                <Time at={version.made_at} form="both" isFocusable /> {words.by} {version.made_by ?? <Explained text={words.codeHint}>{words.code}</Explained>}
              </span>
              {onRestore && !isCurrent(version) && (
                <Button size="small" icon="rerun" aria-label={words.restoreNamed(version.version)} onClick={() => onRestore(version)}>
                  {words.restore}
                </Button>
              )}
            </div>
            {version.deleted_at && (
              <p className={styles.deleted}>
                {words.deleted} <Time at={version.deleted_at} form="both" isFocusable /> {version.deleted_by && `${words.by} ${version.deleted_by}`}
              </p>
            )}
            {before?.deleted_at && <p className="quiet">{words.restarted}</p>}
            {before ? <Changes changes={changesBetween(before, version)} heads={[words.before, words.after]} /> : isWhole && <p className="quiet">{version.version === 1 ? words.created : words.oldest}</p>}
          </li>
        );
      })}
    </ol>
  );
}

function Changes({ changes, heads }: { changes: readonly FieldChange[]; heads: [string, string] }) {
  if (changes.length === 0) return <p className="quiet">{words.same}</p>;
  return (
    <table className={styles.changes}>
      <thead className="visually-hidden">
        <tr>
          {[words.field, ...heads].map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {changes.map((change) => (
          <tr key={change.path}>
            <th scope="row">{fieldName(change.path)}</th>
            <td data-side="before">{change.before === null ? <span className={styles.none}>{words.none}</span> : <del>{change.before}</del>}</td>
            <td data-side="after">{change.after === null ? <span className={styles.none}>{words.none}</span> : <ins>{change.after}</ins>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function RestoreDialog({ job, version, seen, etag, onClose }: { job: Job; version: Version; seen: Version; etag: string | null; onClose: () => void }) {
  const [theirs, setTheirs] = useState<{ version: Version; etag: string | null } | null>(null);
  const send = useMutation({
    mutationFn: (tag: string | null) => restore(job.id, version.version, tag),
    onSuccess: () => {
      toast({ message: words.restored(version.version), action: { label: words.restoreNamed(seen.version), run: () => void restore(job.id, seen.version, null).then(() => queryClient.invalidateQueries()) } });
      void queryClient.invalidateQueries();
      onClose();
    },
    onError: async (error) => {
      if (asApiError(error).status !== 412) return;
      const [now, versions] = await Promise.all([tagged(client.GET("/v1/jobs/{reference}", named(job.id))), data(client.GET("/v1/jobs/{reference}/versions", { params: { path: { reference: job.id }, query: { limit: 1 } } }))]);
      if (versions.items[0]) setTheirs({ version: versions.items[0], etag: now.etag });
    },
  });
  const refused = send.error && asApiError(send.error).status !== 412 ? send.error : null;
  if (theirs)
    return (
      <Dialog
        isOpen
        onClose={onClose}
        title={words.conflict.title}
        width="large"
        footer={
          <>
            <Button onClick={onClose}>{words.conflict.keep}</Button>
            <Button kind="primary" isBusy={send.isPending} onClick={() => send.mutate(theirs.etag)}>
              {words.conflict.force}
            </Button>
          </>
        }
      >
        <p className={styles.lead}>{words.conflict.text}</p>
        <div className={styles.scroll} tabIndex={0} role="region" aria-label={words.conflict.title}>
          <table className={styles.changes}>
            <thead>
              <tr>
                {[words.field, words.conflict.heads.base, words.conflict.heads.theirs, words.conflict.heads.mine].map((head) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {threeVersions(seen, theirs.version, version).map((one) => (
                <tr key={one.path}>
                  <th scope="row">{fieldName(one.path)}</th>
                  <td>{one.base ?? words.none}</td>
                  <td data-changed={one.theirs !== one.base || undefined}>{one.theirs ?? words.none}</td>
                  <td data-changed={one.mine !== one.base || undefined}>{one.mine ?? words.none}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {refused && <ErrorNotice error={refused} />}
      </Dialog>
    );
  return (
    <AskDialog isOpen onClose={onClose} title={words.restoreTitle(version.version)} confirm={words.confirm} isBusy={send.isPending} error={refused} onConfirm={() => send.mutate(etag)}>
      <p className={styles.lead}>{words.restoreLead}</p>
      <div className={styles.scroll} tabIndex={0} role="region" aria-label={words.restoreTitle(version.version)}>
        <Changes changes={changesBetween(seen, version)} heads={[words.now, words.then]} />
      </div>
    </AskDialog>
  );
}

/** In place of a job that was deleted: its versions, and the way back. Null if there is none. */
export function DeletedJob({ reference, otherwise }: { reference: string; otherwise: React.ReactNode }) {
  const found = useVersions(reference);
  const mayOperate = useMay("operate");
  const recreate = useRecreate();
  if (found.isPending) return <Skeleton lines={5} />;
  const page = found.data?.pages[0];
  if (!page?.is_deleted) return otherwise;
  const items = found.data?.pages.flatMap((one) => one.items) ?? [];
  return (
    <>
      <PageHeader
        title={page.name}
        heading={words.gone(page.name)}
        lead={words.goneHint}
        actions={
          mayOperate && (
            <Button kind="primary" icon="rerun" isBusy={recreate.isPending} onClick={() => recreate.mutate({ id: page.id, name: page.name })}>
              {words.recreate}
            </Button>
          )
        }
      />
      {recreate.error && <ErrorNotice error={recreate.error} />}
      <VersionList name={page.name} items={items} isWhole={!found.hasNextPage} isCurrent={() => false} onRestore={null} />
    </>
  );
}

function useRecreate() {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: ({ id }: { id: string; name: string }) => restore(id, undefined, null),
    onSuccess: (_made, { name }) => {
      toast({ message: words.recreated(name) });
      void queryClient.invalidateQueries();
      void navigate({ to: `/jobs/${encodeURIComponent(name)}` as never });
    },
  });
}

/** The jobs that were deleted lately. */
export function DeletedJobs({ onClose }: { onClose: () => void }) {
  const found = useQuery({ queryKey: key("deleted-jobs"), queryFn: () => data(client.GET("/v1/deleted-jobs")) });
  const mayOperate = useMay("operate");
  const recreate = useRecreate();
  return (
    <Dialog isOpen onClose={onClose} title={words.deletedJobs} width="medium">
      {found.error ? (
        <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />
      ) : !found.data ? (
        <Skeleton lines={4} />
      ) : found.data.items.length === 0 ? (
        <EmptyState icon="check" title={words.noneDeleted} />
      ) : (
        <>
          <p className={styles.lead}>{words.deletedLead}</p>
          {recreate.error && <ErrorNotice error={recreate.error} />}
          <ul className={styles.gone}>
            {found.data.items.map((job) => (
              <li key={job.id}>
                <span className={styles.goneName}>
                  <Link to={`/jobs/${encodeURIComponent(job.id)}` as never}>{job.name}</Link>
                  <span className="quiet">{job.schedule_words}</span>
                </span>
                <span className="quiet">
                  <Time at={job.deleted_at} isFocusable /> {job.deleted_by && `${words.by} ${job.deleted_by}`}
                </span>
                {mayOperate && (
                  <Button size="small" icon="rerun" aria-label={words.recreateNamed(job.name)} isBusy={recreate.isPending} onClick={() => recreate.mutate(job)}>
                    {words.recreate}
                  </Button>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </Dialog>
  );
}
