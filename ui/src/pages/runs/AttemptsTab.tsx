import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AttemptShown } from "~/api/schema";
import { EmptyState } from "~/components/EmptyState";
import { StateBadge } from "~/components/StateBadge";
import { type Column, Table } from "~/components/Table";
import { Duration, Time } from "~/components/Time";
import { bytes } from "~/model/numbers";
import { text } from "~/texts/en";
import { workersQuery, type WholeRun } from "./queries";
import { errorText } from "./RunCells";

const STATE_OF: Record<string, string> = { succeeded: "succeeded", running: "running", error: "failed", timeout: "failed", lost: "failed", cancelled: "cancelled", snoozed: "scheduled", released: "ready" };
const { attempts: words } = text.run;

export function AttemptsTab({ run, attempts }: { run: WholeRun; attempts: readonly AttemptShown[] }) {
  const { data: workers } = useQuery(workersQuery());
  const columns: Column<AttemptShown>[] = [
    { id: "number", label: words.number, width: "4.5rem", cell: (one) => <span className="number">{one.attempt}</span>, card: "title", isFixed: true },
    { id: "outcome", label: words.outcome, width: "9rem", cell: (one) => <StateBadge state={STATE_OF[one.outcome] ?? "waiting"} word={text.run.outcomes[one.outcome] ?? one.outcome} explain={false} />, card: "side" },
    { id: "error", label: words.error, width: "minmax(10rem, 1fr)", cell: (one) => <span title={errorText(one.error)}>{errorText(one.error)}</span> },
    { id: "worker", label: words.worker, width: "minmax(7rem, 11rem)", cell: (one) => workers?.items.find((worker) => worker.id === one.worker_id)?.name ?? <span className="mono quiet">…{one.worker_id?.slice(-8)}</span>, from: 700 },
    { id: "started", label: words.started, width: "9rem", align: "end", cell: (one) => <Time at={one.started_at} form="absolute" withoutZone /> },
    { id: "took", label: words.took, width: "6rem", align: "end", cell: (one) => <Duration seconds={one.duration_seconds} since={one.started_at} until={one.finished_at} /> },
    { id: "output", label: words.output, width: "5.5rem", align: "end", cell: (one) => (one.output_bytes == null ? <span className="quiet">{text.none}</span> : bytes(one.output_bytes)), from: 800, card: "none" },
    { id: "log", label: <span className="visually-hidden">{words.showLog}</span>, width: "3.5rem", align: "end", cell: (one) => <Link to={`/runs/${run.id}/log` as never} search={{ attempt: String(one.attempt) } as never}>{words.showLog}</Link>, isFixed: true },
  ];
  return (
    <Table
      label={text.run.tabs.attempts}
      name="attempts"
      rows={attempts}
      columns={columns}
      idOf={(one) => String(one.token)}
      empty={
        <EmptyState icon="runs" title={words.empty}>
          <p>{words.emptyHint}</p>
        </EmptyState>
      }
    />
  );
}
