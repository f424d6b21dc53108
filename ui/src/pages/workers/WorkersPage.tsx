import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { GoneWorker } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { Figures, Panel } from "~/components/Panel";
import { SearchField } from "~/components/SearchField";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { number } from "~/model/numbers";
import { text } from "~/texts/en";
import { words } from "~/texts/workers";
import { ConditionBadge, Labels, WorkerCondition } from "./Condition";
import { DrainDialog } from "./DrainDialog";
import { goneWorkers, type Worker, workersWithRuns } from "./queries";
import { Slots } from "./Slots";
import { drain, drainCommands } from "./useDrain";
import styles from "./workers.module.css";

const FIND_FROM = 9;

export function WorkersPage() {
  const found = useQuery(workersWithRuns());
  const gone = useQuery(goneWorkers());
  useLiveRefresh(() => void found.refetch());
  useLiveRefresh(() => void gone.refetch(), { every: 5_000 });
  const [isDraining, setDraining] = useState(false);
  const [command, setCommand] = useState<Worker | null>(null);
  const [wanted, setWanted] = useState("");
  const mayDrain = useMay("drain");
  if (found.error && !found.data) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  const workers = found.data ?? [];
  const sum = (of: (worker: Worker) => number) => workers.reduce((before, worker) => before + of(worker), 0);
  const used = sum((worker) => worker.running + worker.left_running);
  const late = workers.filter((worker) => worker.health === "late").length;
  const draining = workers.filter((worker) => worker.draining_at !== null).length;
  const queues = new Set(workers.flatMap((worker) => Object.keys(worker.queues))).size;
  const lower = wanted.toLowerCase();
  const shown = workers.filter((worker) => lower === "" || `${worker.name} ${Object.keys(worker.queues).join(" ")} ${Object.entries(worker.labels).map((one) => one.join("=")).join(" ")}`.toLowerCase().includes(lower));
  const hasLabels = workers.some((worker) => Object.keys(worker.labels).length > 0);
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} actions={mayDrain && hasLabels && <Button onClick={() => setDraining(true)}>{words.drainByLabel}</Button>} />
      {!found.data ? (
        <Skeleton lines={6} />
      ) : workers.length === 0 ? (
        <EmptyState icon="workers" title={words.emptyTitle}>
          <p>{words.emptyHint}</p>
          <div className={styles.command}>
            <CopyCommand commands={[{ label: "foliot", command: "foliot worker shop.tasks:app --queue default=10" }]} />
          </div>
        </EmptyState>
      ) : (
        <>
          <Figures
            items={[
              { label: words.figures.workers, value: number(workers.length), note: words.figures.queues(queues) },
              { label: words.figures.slots, value: number(used), note: words.figures.of(sum((worker) => worker.slots)) },
              { label: words.figures.late, value: number(late), tone: late > 0 ? "problem" : undefined },
              { label: words.figures.draining, value: number(draining), tone: draining > 0 ? "notice" : undefined },
            ]}
          />
          {workers.length >= FIND_FROM && (
            <div className={styles.find}>
              <SearchField value={wanted} onChange={setWanted} label={text.filter.label} placeholder={text.filter.label} />
            </div>
          )}
          <ul className={styles.list} aria-label={words.title}>
            {shown.map((worker) => (
              <WorkerCard key={worker.id} worker={worker} mayDrain={mayDrain} onCommand={() => setCommand(worker)} />
            ))}
          </ul>
        </>
      )}
      {gone.data && gone.data.length > 0 && <Gone items={gone.data} />}
      {gone.error ? <ErrorNotice error={gone.error} onRetry={() => void gone.refetch()} /> : null}
      {isDraining && <DrainDialog workers={workers} onClose={() => setDraining(false)} />}
      <Dialog isOpen={command !== null} onClose={() => setCommand(null)} title={words.commandTitle} width="medium">
        {command && <CopyCommand commands={drainCommands(command)} />}
      </Dialog>
    </>
  );
}

function WorkerCard({ worker, mayDrain, onCommand }: { worker: Worker; mayDrain: boolean; onCommand: () => void }) {
  return (
    <li className={styles.card}>
      <div className={styles.who}>
        <div className={styles.title}>
          <h2>
            <Link to={`/workers/${worker.id}` as never} className={styles.name}>
              {worker.name}
            </Link>
          </h2>
          <WorkerCondition worker={worker} />
        </div>
        <p className={styles.beat}>
          {`${words.beat} `}
          <Time at={worker.last_beat_at} />
          {` · ${words.started.toLowerCase()} `}
          <Time at={worker.started_at} />
        </p>
        <Labels labels={worker.labels} />
      </div>
      <div className={styles.load}>
        <Slots worker={worker} />
        {worker.left_running > 0 && <p className={styles.left}>{words.leftRunningCount(worker.left_running)}</p>}
      </div>
      {mayDrain && (
        <div className={styles.actions}>
          <Menu
            label={`${text.moreActions}: ${worker.name}`}
            entries={[
              { label: words.drain, icon: "hourglass", blocked: worker.draining_at ? words.alreadyDraining : null, onSelect: () => drain(worker) },
              { label: words.commands, icon: "copy", onSelect: onCommand },
            ]}
          />
        </div>
      )}
    </li>
  );
}

function Gone({ items }: { items: readonly GoneWorker[] }) {
  return (
    <Panel className={styles.gone} title={words.gone} hint={words.goneHint} isFlush>
      <ul className={styles.goneList} aria-label={words.gone}>
        {items.map((worker) => (
          <li key={worker.id}>
            <Link to={`/workers/${worker.id}` as never} className={styles.name}>
              {worker.name}
            </Link>
            <ConditionBadge condition={worker.is_dead ? "died" : "left"} />
            <span className={worker.lost > 0 ? styles.lost : "quiet"}>{words.lost(worker.lost)}</span>
            <span className={styles.when}>
              <Time at={worker.gone_at} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
