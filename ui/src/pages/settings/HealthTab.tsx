import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { Installation, ProcessShown, SchedulerShown } from "~/api/schema";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Figures, Panel } from "~/components/Panel";
import { Skeleton } from "~/components/Skeleton";
import { type Column, Table } from "~/components/Table";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { number } from "~/model/numbers";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import { State } from "./State";
import styles from "./settings.module.css";
import { words } from "./texts";

const { health } = words;

const NODES: Column<SchedulerShown>[] = [
  { id: "name", label: health.node, width: "minmax(10rem, 1fr)", card: "title", isFixed: true, cell: (node) => node.name },
  { id: "state", label: health.state, width: "8rem", card: "side", cell: (node) => <State tone={node.is_alive ? "good" : "problem"}>{node.is_alive ? health.alive : health.silent}</State> },
  { id: "shards", label: health.owns, width: "6rem", align: "end", isLabelled: true, cell: (node) => number(node.shards) },
  { id: "beat", label: health.beat, width: "9rem", align: "end", isLabelled: true, cell: (node) => <Time at={node.last_beat_at} /> },
  { id: "started", label: health.started, width: "9rem", align: "end", isLabelled: true, cell: (node) => <Time at={node.started_at} /> },
];

const PROCESSES: Column<ProcessShown>[] = [
  { id: "name", label: health.node, width: "minmax(10rem, 1fr)", card: "title", isFixed: true, cell: (process) => process.name },
  { id: "part", label: health.part, width: "8rem", cell: (process) => process.part },
  { id: "state", label: text.jobs.columns.status, width: "9rem", card: "side", cell: (process) => <State tone={process.is_current ? "good" : "notice"}>{process.is_current ? health.current : health.older}</State> },
  { id: "started", label: health.started, width: "9rem", align: "end", isLabelled: true, cell: (process) => <Time at={process.started_at} /> },
];

export function HealthTab() {
  const query = useQuery({ queryKey: key("schedulers"), queryFn: () => data(client.GET("/v1/schedulers")), placeholderData: keepPreviousData });
  useLiveRefresh(() => void query.refetch(), { every: 3_000 });
  const shown: Installation | undefined = query.data;
  if (query.error && !shown) return <Unavailable level={2} error={query.error} onRetry={() => void query.refetch()} />;
  if (!shown) return <Skeleton />;
  const difference = Math.abs(shown.clock_difference_seconds);
  return (
    <div className={styles.stack}>
      <Figures
        items={[
          { label: health.version, value: shown.version, note: health.schema(shown.schema_version) },
          { label: health.shards, value: `${number(shown.owned_shards)} / ${number(shown.shards)}`, note: health.shardsNote, tone: shown.owned_shards < shown.shards ? "problem" : undefined },
          { label: health.clock, value: difference < 0.001 ? "0 ms" : duration(difference), note: health.clockNote, tone: difference > 2 ? "notice" : undefined },
          { label: health.streams, value: number(shown.streams.events + shown.streams.logs), note: health.streamsNote(shown.streams.events, shown.streams.logs) },
        ]}
      />
      <Panel title={health.schedulers} hint={health.schedulersHint} isFlush>
        <Table label={health.schedulers} name="schedulers" rows={shown.items} columns={NODES} idOf={(node) => node.id} empty={<EmptyState icon="unplugged" title={health.noSchedulers} />} />
      </Panel>
      <Panel title={health.processes} hint={health.processesHint} isFlush>
        <Table label={health.processes} name="processes" rows={shown.processes} columns={PROCESSES} idOf={(process) => `${process.part} ${process.name}`} />
      </Panel>
    </div>
  );
}
