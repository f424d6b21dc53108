import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { CopyCommand } from "~/components/Copy";
import { EmptyState, NothingFits, Unavailable } from "~/components/EmptyState";
import { PageHeader } from "~/components/PageHeader";
import { SearchField } from "~/components/SearchField";
import { Skeleton } from "~/components/Skeleton";
import { Sparkline } from "~/components/Sparkline";
import { type Column, FreshButton, Table } from "~/components/Table";
import { Explained } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { useSteadyList } from "~/live/useSteadyList";
import { bounded, number } from "~/model/numbers";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import { words } from "~/texts/queues";
import { Condition } from "./Condition";
import { depthsQuery, placeOf, type Queue, queuesQuery } from "./queries";
import styles from "./queues.module.css";

const FIND_FROM = 9;
const idOf = (queue: Queue) => queue.name;
const { columns: heads } = words;

function Count({ value }: { value: { count: number; more: boolean } }) {
  return value.count === 0 ? <span className="quiet">0</span> : <span className="number">{bounded(value)}</span>;
}

const columnsWith = (depths: Map<string, (number | null)[]> | undefined): Column<Queue>[] => [
  {
    id: "queue",
    label: heads.queue,
    width: "minmax(9rem, 1fr)",
    card: "title",
    isFixed: true,
    cell: (queue) => (
      <Link to={placeOf(queue.name) as never} data-link className={styles.name}>
        {queue.name}
      </Link>
    ),
  },
  { id: "condition", label: heads.condition, width: "7.5rem", card: "side", isFixed: true, cell: (queue) => <Condition queue={queue} /> },
  { id: "depth", label: heads.depth, width: "minmax(6rem, 11rem)", from: 1040, card: "none", cell: (queue) => <Depth queue={queue} values={depths?.get(queue.name)} /> },
  { id: "ready", label: heads.ready, width: "4.5rem", align: "end", isLabelled: true, isFixed: true, cell: (queue) => <Count value={queue.ready} /> },
  { id: "oldest", label: heads.oldest, width: "6.5rem", align: "end", isLabelled: true, cell: (queue) => (queue.oldest_ready_seconds === null ? <span className="quiet">{text.none}</span> : duration(Math.max(1, Math.round(queue.oldest_ready_seconds)))) },
  { id: "running", label: heads.running, width: "4.75rem", align: "end", isLabelled: true, cell: (queue) => <Count value={queue.running} /> },
  { id: "held", label: <Explained text={words.held}>{heads.held}</Explained>, width: "4.5rem", align: "end", from: 760, card: "none", cell: (queue) => <Count value={queue.held} /> },
  { id: "scheduled", label: <Explained text={words.scheduled}>{heads.scheduled}</Explained>, width: "5.5rem", align: "end", from: 820, card: "none", cell: (queue) => <Count value={queue.scheduled} /> },
  { id: "workers", label: heads.workers, width: "4.75rem", align: "end", from: 900, card: "none", cell: (queue) => (queue.workers === 0 ? <span className="quiet">0</span> : number(queue.workers)) },
  { id: "slots", label: heads.slots, width: "4rem", align: "end", from: 640, card: "none", cell: (queue) => (queue.slots === 0 ? <span className="quiet">0</span> : number(queue.slots)) },
];

function Depth({ queue, values }: { queue: Queue; values: (number | null)[] | undefined }) {
  const measured = values?.map((value) => value ?? 0) ?? [];
  if (!measured.some((value) => value > 0)) return <span className={styles.flat} role="img" aria-label={`${words.depth(queue.name)}: ${text.histogram.nothing}`} />;
  return <Sparkline values={measured} color={queue.paused ? "--held-solid" : "--ready-solid"} label={words.depth(queue.name)} />;
}

export function QueuesPage() {
  const { q = "" } = useSearch({ strict: false }) as { q?: string };
  const navigate = useNavigate();
  const set = (value: string) => void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, q: value || undefined })) as never });
  const found = useQuery(queuesQuery());
  const depths = useQuery(depthsQuery());
  useLiveRefresh(() => void found.refetch(), { every: 2_000 });
  useLiveRefresh(() => void depths.refetch(), { every: 30_000 });
  const all = found.data?.items;
  const items = useMemo(() => all?.filter((queue) => queue.name.toLowerCase().includes(q.toLowerCase())), [all, q]);
  const { rows, freshCount, showFresh } = useSteadyList(q, items, idOf);
  const columns = useMemo(() => columnsWith(depths.data), [depths.data]);
  if (found.error && !found.data) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} />
      {!all ? (
        <Skeleton lines={8} />
      ) : all.length === 0 ? (
        <EmptyState icon="queues" title={words.emptyTitle}>
          <p>{words.emptyHint}</p>
          <div className={styles.command}>
            <CopyCommand commands={[{ label: "foliot", command: "foliot submit --queue mail --command 'echo hello'" }]} />
          </div>
        </EmptyState>
      ) : (
        <>
          {all.length >= FIND_FROM && (
            <div className={styles.find}>
              <SearchField value={q} onChange={set} label={words.find} placeholder={words.find} />
            </div>
          )}
          <FreshButton count={freshCount} onShow={showFresh} />
          <Table<Queue> label={words.title} name="queues" rows={rows} columns={columns} idOf={idOf} nameOf={idOf} linkOf={(queue) => ({ to: placeOf(queue.name) })} empty={<NothingFits what={words.what} onClear={() => set("")} />} />
        </>
      )}
    </>
  );
}
