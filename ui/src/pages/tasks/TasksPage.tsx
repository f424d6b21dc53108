import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import type { CircuitState } from "~/api/schema";
import { classes } from "~/components/classes";
import { EmptyState, NothingFits } from "~/components/EmptyState";
import { Icon } from "~/components/Icon";
import { PageHeader } from "~/components/PageHeader";
import { SearchField } from "~/components/SearchField";
import { Segments } from "~/components/Segments";
import badge from "~/components/StateBadge.module.css";
import { type Column, FreshButton, Table } from "~/components/Table";
import { Tag } from "~/components/Tag";
import { Explained, useTip } from "~/components/Tip";
import { useKeysetList } from "~/live/useKeysetList";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { number, percent } from "~/model/numbers";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import { words } from "~/texts/tasks";
import { type Stop, stopsQuery } from "../pauses/queries";
import { circuitsQuery, conditionOf, isFailing, LOOKS, placeOf, type Task, type TaskCondition, taskPage } from "./queries";
import styles from "./tasks.module.css";

const KINDS = ["", "own", "builtin"];
const { columns: heads } = words;
const none = <span className="quiet">{text.none}</span>;

/** How a task is, as colour, icon and word. */
export function Condition({ condition }: { condition: TaskCondition }) {
  const [tone, icon] = LOOKS[condition];
  const tip = useTip(words.meanings[condition]);
  return (
    <span className={classes(badge.badge, condition === "ready" && badge.quiet)} data-tone={tone} {...tip}>
      <Icon name={icon} size={14} strokeWidth={2.2} />
      {words.conditions[condition]}
    </span>
  );
}

const columnsWith = (stops: readonly Stop[], circuits: readonly CircuitState[]): Column<Task>[] => [
  {
    id: "task",
    label: heads.task,
    width: "minmax(12rem, 1fr)",
    card: "title",
    isFixed: true,
    cell: (task) => (
      <span className={styles.task}>
        <span className={styles.named}>
          <Link to={placeOf(task.name) as never} data-link className={styles.name}>
            {task.name}
          </Link>
          {task.is_built_in && <Tag name={words.builtIn} />}
        </span>
        {task.description && <span className={styles.description}>{task.description}</span>}
      </span>
    ),
  },
  { id: "condition", label: heads.condition, width: "8rem", card: "side", isFixed: true, cell: (task) => <Condition condition={conditionOf(task, stops, circuits)} /> },
  { id: "queue", label: heads.queue, width: "minmax(5rem, 8rem)", from: 760, card: "none", cell: (task) => <Link to={`/queues/${encodeURIComponent(task.queue)}` as never} className={styles.queue}>{task.queue}</Link> },
  { id: "workers", label: heads.workers, width: "4.75rem", align: "end", from: 640, isLabelled: true, cell: (task) => (task.workers === 0 ? <span className="quiet">0</span> : number(task.workers)) },
  { id: "p50", label: <Explained text={words.p50}>{heads.p50}</Explained>, width: "6rem", align: "end", from: 900, card: "none", cell: (task) => (task.statistics?.p50_seconds == null ? none : duration(task.statistics.p50_seconds)) },
  { id: "p95", label: <Explained text={words.p95}>{heads.p95}</Explained>, width: "6rem", align: "end", isLabelled: true, cell: (task) => (task.statistics?.p95_seconds == null ? none : duration(task.statistics.p95_seconds)) },
  { id: "ended", label: <Explained text={words.endedHint}>{heads.ended}</Explained>, width: "4.5rem", align: "end", from: 820, card: "none", cell: (task) => (task.statistics ? number(task.statistics.ended) : none) },
  {
    id: "failed",
    label: <Explained text={words.failedHint}>{heads.failed}</Explained>,
    width: "4.5rem",
    align: "end",
    isLabelled: true,
    cell: (task) => (task.statistics && task.statistics.ended > 0 ? <span className={isFailing(task.statistics) ? styles.bad : task.statistics.failed === 0 ? "quiet" : undefined}>{percent(task.statistics.failed / task.statistics.ended)}</span> : none),
  },
];

export function TasksPage() {
  const { q = "", kind = "" } = useSearch({ strict: false }) as { q?: string; kind?: string };
  const navigate = useNavigate();
  const set = (change: Record<string, string | undefined>) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const list = useKeysetList<Task>({ listKey: "tasks", fetchPage: taskPage, idOf: (task) => task.name, every: 10_000 });
  const stops = useQuery(stopsQuery());
  const circuits = useQuery(circuitsQuery());
  useLiveRefresh(
    () => {
      void stops.refetch();
      void circuits.refetch();
    },
    { every: 5_000 },
  );
  const lower = q.toLowerCase();
  const rows = useMemo(
    () =>
      list.items.filter(
        (task) => (kind === "" || task.is_built_in === (kind === "builtin")) && (lower === "" || `${task.name} ${task.description} ${task.queue} ${task.tags.join(" ")}`.toLowerCase().includes(lower)),
      ),
    [list.items, kind, lower],
  );
  const columns = useMemo(() => columnsWith(stops.data?.items ?? [], circuits.data ?? []), [stops.data, circuits.data]);
  const isEmpty = !list.isLoading && !list.error && list.items.length === 0;
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} />
      {isEmpty ? (
        <EmptyState icon="bolt" title={words.emptyTitle}>
          <p>{words.emptyHint}</p>
        </EmptyState>
      ) : (
        <>
          <div className={styles.filters}>
            <SearchField value={q} onChange={(value) => set({ q: value || undefined })} label={words.find} placeholder={words.find} />
            <Segments label={words.kinds.label ?? ""} value={kind} onChange={(value) => set({ kind: value || undefined })} options={KINDS.map((value) => ({ value, label: words.kinds[value] ?? value }))} />
          </div>
          <FreshButton count={list.freshCount} onShow={list.showFresh} />
          <Table<Task>
            label={words.title}
            name="tasks"
            rows={rows}
            columns={columns}
            idOf={(task) => task.name}
            nameOf={(task) => task.name}
            linkOf={(task) => ({ to: placeOf(task.name) })}
            toneOf={(task) => (task.is_disabled ? "quiet" : undefined)}
            isLoading={list.isLoading}
            hasMore={list.hasMore}
            isLoadingMore={list.isLoadingMore}
            onMore={list.loadMore}
            onVisible={list.setVisible}
            error={list.error}
            onRetry={list.reload}
            empty={<NothingFits what={words.what} onClear={() => set({ q: undefined, kind: undefined })} />}
          />
        </>
      )}
    </>
  );
}
