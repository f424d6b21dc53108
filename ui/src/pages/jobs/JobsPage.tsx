import { useNavigate, useSearch } from "@tanstack/react-router";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { useMay } from "~/api/session";
import { SavedViews } from "~/app/SavedViews";
import { Button, IconButton } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { EmptyState, NothingFits } from "~/components/EmptyState";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { SearchField } from "~/components/SearchField";
import { Segments } from "~/components/Segments";
import { type Column, FreshButton, Table } from "~/components/Table";
import { Tags } from "~/components/Tag";
import { useKeysetList } from "~/live/useKeysetList";
import { text } from "~/texts/en";
import { words as versions } from "~/texts/versions";
import { JobStatus, JobTicks, NextFire, ScheduleWords } from "./cells";
import { PauseDialog } from "./PauseDialog";
import { type Job, jobPage } from "./queries";
import { useJobActions } from "./useJobActions";
import styles from "./JobsPage.module.css";

const DeletedJobs = lazy(() => import("./VersionsTab").then((module) => ({ default: module.DeletedJobs })));

const { jobs: words } = text;
const STATUSES = ["", "active", "paused", "ended"] as const;

export function JobsPage() {
  const { q = "", status = "", tag, deleted } = useSearch({ strict: false }) as { q?: string; status?: string; tag?: string; deleted?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const [pausing, setPausing] = useState<Job | null>(null);
  const mayOperate = useMay("operate");
  const maySubmit = useMay("submit");
  const actions = useJobActions();
  const list = useKeysetList<Job>({ listKey: `jobs ${tag ?? ""}`, fetchPage: (after, signal) => jobPage(tag ? { tag } : {}, after, signal), idOf: (job) => job.id, every: 2_000 });
  const lower = q.toLowerCase();
  const rows = useMemo(
    () => list.items.filter((job) => (status === "" || job.status === status) && (lower === "" || `${job.name} ${job.task} ${job.queue} ${job.tags.join(" ")}`.toLowerCase().includes(lower))),
    [list.items, status, lower],
  );
  const columns: Column<Job>[] = [
    {
      id: "name",
      label: words.columns.name,
      width: "minmax(11rem, 1.1fr)",
      card: "title",
      isFixed: true,
      cell: (job) => (
        <span className={styles.name}>
          <Link to={`/jobs/${encodeURIComponent(job.name)}` as never} data-link className={styles.link}>
            {job.name}
          </Link>
          <Tags names={job.tags} most={2} />
        </span>
      ),
    },
    { id: "schedule", label: words.columns.schedule, width: "minmax(11rem, 1.2fr)", cell: (job) => <ScheduleWords job={job} />, from: 720 },
    { id: "next", label: words.columns.next, width: "6rem", align: "end", isLabelled: true, cell: (job) => <NextFire job={job} /> },
    { id: "ticks", label: words.columns.ticks, width: "minmax(12rem, 1fr)", cell: (job) => <JobTicks job={job} />, from: 860, card: "none" },
    { id: "queue", label: words.columns.queue, width: "6rem", cell: (job) => <span className="quiet">{job.queue}</span>, from: 1080, card: "none" },
    { id: "status", label: words.columns.status, width: "6.5rem", card: "side", cell: (job) => <JobStatus job={job} /> },
    {
      id: "actions",
      label: <span className="visually-hidden">{text.moreActions}</span>,
      width: mayOperate ? "4.25rem" : "0",
      align: "end",
      card: "none",
      isFixed: true,
      cell: (job) =>
        mayOperate && (
          <span className={styles.actions}>
            <IconButton icon="play" size="small" label={words.triggerNamed(job.name)} onClick={() => actions.trigger.mutate(job)} />
            <Menu
              label={`${text.moreActions}: ${job.name}`}
              size="small"
              entries={[
                job.status === "paused"
                  ? { label: words.resume, icon: "play", onSelect: () => actions.resume.mutate(job) }
                  : { label: `${words.pause} …`, icon: "pause", blocked: job.status === "ended" ? words.statusMeanings.ended : null, onSelect: () => setPausing(job) },
                { label: words.delete, icon: "trash", isDangerous: true, onSelect: () => actions.remove(job) },
              ]}
            />
          </span>
        ),
    },
  ];
  const isEmpty = !list.isLoading && !list.error && list.items.length === 0 && !tag;
  return (
    <>
      <PageHeader
        title={words.title}
        actions={
          <>
            {!isEmpty && <SavedViews page="jobs" path="/jobs" />}
            <Menu label={text.moreActions} kind="plain" entries={[{ label: versions.deletedJobs, icon: "trash", onSelect: () => set({ deleted: "1" }) }]} />
            {maySubmit && (
              <Button kind="primary" icon="plus" onClick={() => void navigate({ to: "/jobs/new" as never })}>
                {text.scheduling.newJob}
              </Button>
            )}
          </>
        }
      />
      {isEmpty ? (
        <EmptyState icon="jobs" title={words.emptyTitle}>
          <p>{words.emptyHint}</p>
          <div className={styles.command}>
            <CopyCommand commands={[{ label: "foliot", command: "foliot submit --name hello --every 10s --command 'echo hello'" }]} />
          </div>
        </EmptyState>
      ) : (
        <>
          <div className={styles.filters}>
            <SearchField value={q} onChange={(value) => set({ q: value || undefined })} label={words.search} placeholder={words.search} />
            <Segments label={words.columns.status} value={status} onChange={(value) => set({ status: value || undefined })} options={STATUSES.map((value) => ({ value, label: value === "" ? text.runs.all : (words.statuses[value] ?? value) }))} />
            {tag && <Menu label={words.tag(tag)} text={words.tag(tag)} entries={[{ label: text.empty.clearFilters, icon: "close", onSelect: () => set({ tag: undefined }) }]} />}
          </div>
          <FreshButton count={list.freshCount} onShow={list.showFresh} />
          <Table<Job>
            label={words.title}
            name="jobs"
            rows={rows}
            columns={columns}
            idOf={(job) => job.id}
            nameOf={(job) => job.name}
            linkOf={(job) => ({ to: `/jobs/${encodeURIComponent(job.name)}` })}
            toneOf={(job) => (job.status === "ended" ? "quiet" : undefined)}
            isLoading={list.isLoading}
            hasMore={list.hasMore}
            isLoadingMore={list.isLoadingMore}
            onMore={list.loadMore}
            onVisible={list.setVisible}
            error={list.error}
            onRetry={list.reload}
            empty={<NothingFits what={words.what} onClear={() => set({ q: undefined, status: undefined, tag: undefined })} />}
          />
        </>
      )}
      {deleted && (
        <Suspense fallback={null}>
          <DeletedJobs onClose={() => set({ deleted: undefined })} />
        </Suspense>
      )}
      {pausing && <PauseDialog job={pausing} onClose={() => setPausing(null)} />}
    </>
  );
}
