import type { ReactNode } from "react";
import { QueueLink } from "~/components/Places";
import { StateBadge } from "~/components/StateBadge";
import { type Column, FreshButton, Table } from "~/components/Table";
import { Duration, Time } from "~/components/Time";
import { useKeysetList } from "~/live/useKeysetList";
import type { RunQuery } from "~/model/runFilter";
import { text } from "~/texts/en";
import { nameOfRun, type Run, runPage } from "./queries";
import { RunName } from "./RunCells";

const { columns } = text.runs;

/** The columns of every list of runs. */
export const RUN_COLUMNS: Column<Run>[] = [
  { id: "state", label: columns.state, width: "7.5rem", cell: (run) => <StateBadge state={run.state} />, card: "side", isFixed: true },
  { id: "run", label: columns.run, width: "minmax(14rem, 1fr)", cell: (run) => <RunName run={run} />, card: "title", isFixed: true },
  { id: "queue", label: columns.queue, width: "minmax(5rem, 8rem)", cell: (run) => <QueueLink name={run.queue} className="quiet" />, from: 760 },
  { id: "attempt", label: columns.attempt, width: "4.5rem", align: "end", cell: (run) => (run.attempt > 1 ? run.attempt : <span className="quiet">{run.attempt || text.none}</span>), from: 1000, card: "none" },
  { id: "priority", label: columns.priority, width: "4.5rem", align: "end", cell: (run) => run.priority, isExtra: true },
  { id: "due", label: columns.due, width: "6.5rem", align: "end", cell: (run) => <Time at={run.tick_at ?? run.started_at ?? run.scheduled_at} /> },
  { id: "ended", label: columns.ended, width: "6.5rem", align: "end", cell: (run) => <Time at={run.finished_at} />, isExtra: true },
  { id: "duration", label: columns.duration, width: "5.5rem", align: "end", cell: (run) => <Duration since={run.started_at} until={run.finished_at} />, from: 520 },
];

/** The runs of something else, such as a job, a queue or a worker. */
export function RunList({ query, name, empty }: { query: RunQuery; name: string; empty: ReactNode }) {
  const list = useKeysetList<Run>({ listKey: JSON.stringify(query), fetchPage: (after, signal) => runPage(query, after, signal), idOf: (run) => run.id });
  return (
    <>
      <FreshButton count={list.freshCount} onShow={list.showFresh} />
      <Table<Run>
        label={text.runs.title}
        name={name}
        rows={list.items}
        columns={RUN_COLUMNS}
        idOf={(run) => run.id}
        nameOf={nameOfRun}
        linkOf={(run) => ({ to: `/runs/${run.id}` })}
        isLoading={list.isLoading}
        hasMore={list.hasMore}
        isLoadingMore={list.isLoadingMore}
        onMore={list.loadMore}
        onVisible={list.setVisible}
        error={list.error}
        onRetry={list.reload}
        empty={empty}
      />
    </>
  );
}
