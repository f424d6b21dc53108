import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import type { GoneWorker, WorkerDetails, WorkerRun } from "~/api/schema";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button, IconButton } from "~/components/Button";
import { CopyCommand, Id } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { PageHeader } from "~/components/PageHeader";
import { Panel } from "~/components/Panel";
import { QueueLink } from "~/components/Places";
import { Skeleton } from "~/components/Skeleton";
import { type Column, Table } from "~/components/Table";
import { Tag } from "~/components/Tag";
import { Duration, Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { text } from "~/texts/en";
import { words } from "~/texts/workers";
import { RunList } from "../runs/RunList";
import { ConditionBadge, Labels } from "./Condition";
import { conditionOf, workerQuery } from "./queries";
import { Slots } from "./Slots";
import { drain, drainCommands } from "./useDrain";
import styles from "./workers.module.css";

const COLUMNS: Column<WorkerRun>[] = [
  {
    id: "run",
    label: words.columns.run,
    width: "minmax(12rem, 1fr)",
    card: "title",
    cell: (run) => (
      <Link to={`/runs/${run.id}` as never} data-link className={styles.name}>
        {run.name ?? run.task}
      </Link>
    ),
  },
  { id: "task", label: words.columns.task, width: "minmax(8rem, 14rem)", from: 700, cell: (run) => <span className="quiet">{run.task}</span> },
  { id: "queue", label: words.columns.queue, width: "minmax(5rem, 8rem)", from: 560, cell: (run) => <span className="quiet">{run.queue}</span> },
  { id: "attempt", label: words.columns.attempt, width: "4.5rem", align: "end", from: 860, card: "none", cell: (run) => run.attempt },
  { id: "since", label: words.columns.since, width: "6.5rem", align: "end", card: "side", cell: (run) => <Duration since={run.started_at} /> },
];

export function WorkerPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const found = useQuery(workerQuery(id));
  useLiveRefresh(() => void found.refetch());
  if (found.error && !found.data) return <Unavailable error={found.error} what={words.one} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={6} height="1.5rem" />;
  const worker = found.data;
  return (
    <>
      <WorkerHeader worker={worker} />
      {worker.gone ? (
        <Lost worker={worker.gone} />
      ) : (
        <>
          <Panel title={words.slots} hint={words.slotsOf(worker.running + worker.left_running, worker.slots)}>
            <Slots worker={worker} />
            {worker.left_running > 0 && <p className={styles.left}>{words.leftRunningCount(worker.left_running)}</p>}
          </Panel>
          <Panel title={words.inSlots} isFlush>
            <Table<WorkerRun>
              label={words.inSlots}
              name="worker-slots"
              rows={worker.runs ?? []}
              columns={COLUMNS}
              idOf={(run) => run.id}
              linkOf={(run) => ({ to: `/runs/${run.id}` })}
              empty={
                <EmptyState icon="workers" title={words.idle}>
                  <p>{words.idleHint}</p>
                </EmptyState>
              }
            />
          </Panel>
          <Panel title={words.tasks}>
            <p className={styles.labels}>
              {worker.tasks.map((task) => (
                <Link key={task} to={`/tasks/${encodeURIComponent(task)}` as never}>
                  <Tag name={task} />
                </Link>
              ))}
            </p>
          </Panel>
        </>
      )}
      <Panel title={words.history} isFlush>
        <RunList name="worker-runs" query={{ worker: worker.id }} empty={<EmptyState icon="runs" title={words.noRuns} />} />
      </Panel>
    </>
  );
}

function WorkerHeader({ worker }: { worker: WorkerDetails }) {
  const mayDrain = useMay("drain") && !worker.gone;
  const [isCommand, setCommand] = useState(false);
  useKeys(mayDrain && !worker.draining_at ? [{ label: words.drain, icon: "hourglass", run: () => drain(worker) }] : []);
  const condition = conditionOf(worker);
  return (
    <>
      <PageHeader
        title={worker.name}
        above={
          <nav aria-label={words.title}>
            <Link to={"/workers" as never}>{words.title}</Link>
          </nav>
        }
        heading={
          <>
            {worker.name} <ConditionBadge condition={condition} />
          </>
        }
        lead={worker.gone ? words.goneLead(worker.gone.is_dead) : words.meanings[condition]}
        actions={
          mayDrain && (
            <>
              <Button icon="hourglass" blocked={worker.draining_at ? words.alreadyDraining : null} onClick={() => drain(worker)}>
                {words.drain}
              </Button>
              <IconButton icon="copy" label={words.commands} onClick={() => setCommand(true)} />
            </>
          )
        }
      />
      <div className={styles.facts}>
        <Facts
          columns
          items={[
            [worker.gone ? words.goneAt : words.beat, <Time key="b" at={worker.last_beat_at} isFocusable />],
            [words.started, <Time key="s" at={worker.started_at} isFocusable />],
            [words.queues, <span key="q" className={styles.labels}>
                {Object.entries(worker.queues).map(([queue, slots]) => (
                  <span key={queue}>
                    <QueueLink name={queue} /> {slots}
                  </span>
                ))}
              </span>],
            Object.keys(worker.labels).length > 0 && [words.labels, <Labels key="l" labels={worker.labels} />],
            [text.run.facts.id, <Id key="i" value={worker.id} />],
          ]}
        />
      </div>
      <Dialog isOpen={isCommand} onClose={() => setCommand(false)} title={words.commandTitle} width="medium">
        <CopyCommand commands={drainCommands(worker)} />
      </Dialog>
    </>
  );
}

function Lost({ worker }: { worker: GoneWorker }) {
  if (worker.lost === 0) return <EmptyState icon="check" title={words.lostNothing} />;
  return (
    <Panel title={`${words.lostTitle}: ${worker.lost}`} hint={words.lostHint}>
      <ul className={styles.lostRuns}>
        {worker.lost_runs.map((id) => (
          <li key={id}>
            <Link to={`/runs/${id}` as never} className="mono">
              {id}
            </Link>
          </li>
        ))}
        {worker.lost > worker.lost_runs.length && <li className="quiet">{words.lostMore(worker.lost - worker.lost_runs.length)}</li>}
      </ul>
    </Panel>
  );
}
