import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { EmptyState, NothingFits, Unavailable } from "~/components/EmptyState";
import { Checkbox } from "~/components/Field";
import { Icon } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { SearchField } from "~/components/SearchField";
import { Segments } from "~/components/Segments";
import { Sparkline } from "~/components/Sparkline";
import { type Column, FreshButton, Table } from "~/components/Table";
import { Time } from "~/components/Time";
import { useTip } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { useSteadyList } from "~/live/useSteadyList";
import { number } from "~/model/numbers";
import { words } from "~/texts/dead";
import { text } from "~/texts/en";
import { type Group, type GroupFilter, groupsQuery, headline, placeOf } from "./queries";
import styles from "./dead.module.css";

const RANGES = ["1h", "24h", ""];
const idOf = (group: Group) => group.fingerprint;

const COLUMNS: Column<Group>[] = [
  { id: "error", label: words.columns.error, width: "minmax(14rem, 1fr)", card: "title", isFixed: true, cell: (group) => <ErrorCell group={group} /> },
  { id: "trend", label: words.columns.trend, width: "9rem", from: 760, card: "none", cell: (group) => <Sparkline values={group.trend} form="bars" color="--failed-solid" label={words.trend(group.count)} /> },
  { id: "count", label: words.columns.count, width: "5rem", align: "end", card: "side", isFixed: true, cell: (group) => <span className={styles.count}>{number(group.count)}</span> },
  { id: "first", label: words.columns.first, width: "6.5rem", align: "end", from: 900, card: "none", cell: (group) => <Time at={group.first_at} /> },
  { id: "last", label: words.columns.last, width: "6.5rem", align: "end", isLabelled: true, cell: (group) => <Time at={group.last_at} /> },
];

export function DeadPage() {
  const { q = "", ...filter } = useSearch({ strict: false }) as GroupFilter & { q?: string };
  const { since, task, queue, dismissed } = filter;
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const found = useQuery(groupsQuery(filter));
  useLiveRefresh(() => void found.refetch(), { every: 5_000 });
  const lower = q.toLowerCase();
  const items = useMemo(
    () => found.data?.items.filter((group) => lower === "" || `${group.kind ?? ""} ${group.message ?? ""} ${group.task} ${group.queue} ${group.note ?? ""}`.toLowerCase().includes(lower)),
    [found.data, lower],
  );
  const { rows, freshCount, showFresh } = useSteadyList(found.isPlaceholderData ? "" : [since, task, queue, dismissed, q].join(" "), items, idOf);
  if (found.error && !found.data) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  const isFiltered = Boolean(since || task || queue || dismissed || q);
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} />
      <div className={styles.filters}>
        <SearchField value={q} onChange={(value) => set({ q: value || undefined })} label={words.find} placeholder={words.find} />
        <Segments label={words.ranges.label ?? ""} value={since ?? ""} onChange={(value) => set({ since: value || undefined })} options={RANGES.map((value) => ({ value, label: words.ranges[value] ?? value }))} />
        {task && <Only label={words.only.task(task)} onClear={() => set({ task: undefined })} />}
        {queue && <Only label={words.only.queue(queue)} onClear={() => set({ queue: undefined })} />}
        <Checkbox label={words.dismissedToo} checked={dismissed === "1"} onChange={(event) => set({ dismissed: event.target.checked ? "1" : undefined })} />
      </div>
      <FreshButton count={freshCount} onShow={showFresh} />
      <Table<Group>
        label={words.title}
        name="dead"
        rows={rows}
        columns={COLUMNS}
        idOf={idOf}
        nameOf={headline}
        linkOf={(group) => placeOf(group)}
        toneOf={(group) => (isDismissed(group) ? "quiet" : undefined)}
        isLoading={found.isLoading}
        empty={
          isFiltered ? (
            <NothingFits what={words.what} onClear={() => set({ q: undefined, since: undefined, task: undefined, queue: undefined, dismissed: undefined })} />
          ) : (
            <EmptyState icon="check" title={words.emptyTitle}>
              <p>{words.emptyHint}</p>
            </EmptyState>
          )
        }
      />
      {found.data?.more && <p className={styles.more}>{words.partial}</p>}
    </>
  );
}

const isDismissed = (group: Group) => group.dismissed_until !== null && Date.parse(group.last_at) <= Date.parse(group.dismissed_until);

/** A filter that a link has brought, with its end. */
function Only({ label, onClear }: { label: string; onClear: () => void }) {
  return <Menu label={label} text={label} entries={[{ label: text.empty.clearFilters, icon: "close", onSelect: onClear }]} />;
}

function ErrorCell({ group }: { group: Group }) {
  const place = placeOf(group);
  return (
    <span className={styles.error}>
      <Link to={place.to as never} search={place.search as never} data-link className={styles.message}>
        {headline(group)}
      </Link>
      <span className={styles.where}>
        <span className="truncate">{words.inQueue(group.task, group.queue)}</span>
        {isDismissed(group) && <span className={styles.mark}>{words.dismissed}</span>}
        {group.note && <Note note={group.note} />}
      </span>
    </span>
  );
}

function Note({ note }: { note: string }) {
  const tip = useTip(note.slice(0, 400));
  return (
    <span className={styles.noted} {...tip}>
      <Icon name="edit" size={14} />
      <span className="visually-hidden">{`${words.noted}: `}</span>
      <span className="truncate">{note.split("\n")[0]}</span>
    </span>
  );
}
