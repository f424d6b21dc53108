import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { CheckpointShown } from "~/api/schema";
import { EmptyState } from "~/components/EmptyState";
import { StateBadge } from "~/components/StateBadge";
import { type Column, Table } from "~/components/Table";
import { Duration, Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { text } from "~/texts/en";
import { errorText } from "./RunCells";
import styles from "./CheckpointsTab.module.css";

const { checkpoints: words } = text;
const STATE_OF = { done: "succeeded", failed: "failed", waiting: "held" } as const;

/** Most runs have none, so one page is enough to know whether there is something to show. */
export const checkpointsQuery = (id: string) =>
  queryOptions({
    queryKey: key("run", id, "checkpoints"),
    queryFn: () => data(client.GET("/v1/runs/{reference}/checkpoints", { params: { path: { reference: id }, query: { limit: 200 } } })),
    staleTime: 2_000,
  });

/** The recorded steps and waits of a durable function. */
export function CheckpointsTab({ id, isLive }: { id: string; isLive: boolean }) {
  const found = useQuery(checkpointsQuery(id));
  useLiveRefresh(() => void found.refetch(), { isOn: isLive });
  const columns: Column<CheckpointShown>[] = [
    { id: "status", label: words.columns.status, width: "7rem", card: "side", cell: (one) => <StateBadge state={STATE_OF[one.status]} word={words.statuses[one.status]} explain={false} /> },
    {
      id: "name",
      label: words.columns.name,
      width: "minmax(10rem, 1fr)",
      card: "title",
      isFixed: true,
      cell: (one) => (
        <span className={styles.name}>
          {one.run_id ? <Link to={`/runs/${one.run_id}` as never}>{one.name}</Link> : <span>{one.name}</span>}
          {one.is_unused && <span className="quiet">{words.unused}</span>}
        </span>
      ),
    },
    { id: "kind", label: words.columns.kind, width: "6.5rem", cell: (one) => <span className="quiet">{words.kinds[one.kind] ?? one.kind}</span>, from: 640 },
    {
      id: "result",
      label: words.columns.result,
      width: "minmax(10rem, 1.2fr)",
      cell: (one) =>
        one.error ? (
          <span className={styles.error}>{errorText(one.error)}</span>
        ) : one.status === "waiting" && one.until ? (
          <span className="quiet">
            {words.until} <Time at={one.until} form="both" />
          </span>
        ) : (
          <code className={styles.result}>{one.result}</code>
        ),
    },
    { id: "attempt", label: words.columns.attempt, width: "4.5rem", align: "end", cell: (one) => one.attempt, from: 760, card: "none" },
    { id: "began", label: words.columns.began, width: "9rem", align: "end", cell: (one) => <Time at={one.started_at} form="absolute" withoutZone />, from: 760 },
    { id: "took", label: words.columns.took, width: "6rem", align: "end", cell: (one) => <Duration since={one.started_at} until={one.finished_at} /> },
  ];
  return (
    <>
      <p className={styles.lead}>{words.lead}</p>
      <Table
        label={words.tab}
        name="checkpoints"
        rows={found.data?.items ?? []}
        columns={columns}
        idOf={(one) => one.name}
        isLoading={found.isLoading}
        error={found.error}
        onRetry={() => void found.refetch()}
        empty={<EmptyState icon="info" title={words.empty} />}
      />
    </>
  );
}
