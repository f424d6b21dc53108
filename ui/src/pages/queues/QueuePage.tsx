import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { type Figure, Figures, Panel } from "~/components/Panel";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { bounded } from "~/model/numbers";
import { conditionOf, growth, timeToEmpty } from "~/model/queues";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import { words } from "~/texts/queues";
import { Charts } from "../overview/Charts";
import { RANGES, type Range, seriesQuery } from "../overview/queries";
import { PauseForm } from "../pauses/PauseForm";
import { type Stop, stopsQuery } from "../pauses/queries";
import { usePauseActions } from "../pauses/usePauseActions";
import { workersQuery } from "../runs/queries";
import { RunList } from "../runs/RunList";
import { WhyTab } from "../runs/WhyTab";
import { Condition } from "./Condition";
import { Keys } from "./Keys";
import { LimitsDialog } from "./LimitsDialog";
import { keysQuery, type Queue, queueCommands, queuesQuery } from "./queries";
import styles from "./queues.module.css";

const GROWTH_MINUTES = 5;

export function QueuePage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const found = useQuery(queuesQuery());
  useLiveRefresh(() => void found.refetch(), { every: 2_000 });
  if (found.error && !found.data) return <Unavailable error={found.error} what={words.one} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={8} height="1.5rem" />;
  const queue = found.data.items.find((one) => one.name === name);
  if (!queue)
    return (
      <EmptyState level={1} icon="search" title={text.empty.notFound(words.one)}>
        <p>{words.unknown}</p>
      </EmptyState>
    );
  return <Shown key={name} queue={queue} />;
}

function Shown({ queue }: { queue: Queue }) {
  const { range } = useSearch({ strict: false }) as { range?: string };
  const navigate = useNavigate();
  const chosen: Range = range && range in RANGES ? (range as Range) : "3h";
  return (
    <>
      <QueueHeader queue={queue} />
      <Numbers queue={queue} />
      <Panel className={styles.part} title={words.why} hint={words.whyHint} isFlush>
        <WhyTab reference={queue.name} run={{ id: queue.name, state: "ready", queue: queue.name }} isPart />
      </Panel>
      <Keys queue={queue.name} />
      <div className={styles.part}>
        <Charts queue={queue.name} range={chosen} onRange={(next) => void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, range: next === "3h" ? undefined : next })) as never })} />
      </div>
      <Workers queue={queue} />
      <Panel className={styles.part} title={words.runs} isFlush>
        <RunList name="queue-runs" query={{ queue: queue.name }} empty={<EmptyState icon="runs" title={words.noRuns} />} />
      </Panel>
    </>
  );
}

function QueueHeader({ queue }: { queue: Queue }) {
  const mayOperate = useMay("operate");
  const { end } = usePauseActions();
  const stops = useQuery(stopsQuery());
  useLiveRefresh(() => void stops.refetch(), { every: 2_000 });
  const own = stops.data?.items.find((stop) => stop.kind === "queue" && stop.name === queue.name) ?? null;
  const [dialog, setDialog] = useState<"pause" | "change" | "limits" | "command" | null>(null);
  const navigate = useNavigate();
  const close = () => setDialog(null);
  const toggle = () => (own ? end.mutate(own) : setDialog("pause"));
  useKeys(
    mayOperate
      ? [
          { key: "p", label: own ? words.resume : words.pause, icon: own ? "play" : "pause", run: toggle },
          { label: words.limits, icon: "edit", run: () => setDialog("limits") },
        ]
      : [],
  );
  return (
    <>
      <PageHeader
        title={queue.name}
        above={
          <nav aria-label={words.title}>
            <Link to={"/queues" as never}>{words.title}</Link>
          </nav>
        }
        heading={
          <>
            {queue.name} <Condition queue={queue} />
          </>
        }
        lead={own ? <PausedLead stop={own} /> : queue.paused ? words.everythingPaused : words.meanings[conditionOf(queue)]}
        actions={
          <>
            {mayOperate && (
              <>
                {own ? (
                  <Button icon="play" isBusy={end.isPending} onClick={toggle}>
                    {words.resume}
                  </Button>
                ) : (
                  <Button icon="pause" onClick={toggle}>
                    {words.pause}
                  </Button>
                )}
                <Button onClick={() => setDialog("limits")}>{words.limits}</Button>
              </>
            )}
            <Menu
              label={text.moreActions}
              kind="plain"
              entries={[
                ...(mayOperate && own ? [{ label: words.changePause, icon: "edit" as const, onSelect: () => setDialog("change") }] : []),
                { label: words.deadIn, icon: "dead", onSelect: () => void navigate({ to: "/dead" as never, search: { queue: queue.name } as never }) },
                ...(mayOperate ? [{ label: words.commands, icon: "copy" as const, onSelect: () => setDialog("command") }] : []),
              ]}
            />
          </>
        }
      />
      {(dialog === "pause" || dialog === "change") && <PauseForm stop={dialog === "change" ? own : null} kinds={["queue"]} of={{ kind: "queue", name: queue.name }} onClose={close} />}
      {dialog === "limits" && <LimitsDialog queue={queue.name} onClose={close} />}
      <Dialog isOpen={dialog === "command"} onClose={close} title={words.commandTitle} width="medium">
        <CopyCommand commands={queueCommands(queue)} />
      </Dialog>
    </>
  );
}

function PausedLead({ stop }: { stop: Stop }) {
  if (!stop.until) return <>{words.meanings.paused}</>;
  return (
    <>
      {words.pausedUntil} <Time at={stop.until} form="absolute" isFocusable />.
    </>
  );
}

function Numbers({ queue }: { queue: Queue }) {
  const keys = useQuery(keysQuery(queue.name));
  const depth = useQuery(seriesQuery("ready", "1h", queue.name));
  const emptying = keys.data ? timeToEmpty(queue, keys.data.ended_last_minute) : null;
  const { figures } = words;
  const grown = growth(depth.data?.lines[0]?.values ?? [], GROWTH_MINUTES);
  const empty: Figure | null =
    emptying === null
      ? null
      : emptying.kind === "takes"
        ? { label: figures.empty, value: duration(emptying.seconds), note: words.pace(emptying.perMinute, keys.data?.more_ended ?? false) }
        : { label: figures.empty, value: words.emptying[emptying.kind]?.[0], note: words.emptying[emptying.kind]?.[1], tone: emptying.kind === "stuck" ? "notice" : undefined };
  return (
    <>
      <Figures
        items={[
          {
            label: figures.ready,
            value: bounded(queue.ready),
            note: queue.oldest_ready_seconds === null ? figures.nothingWaits : figures.oldest(duration(Math.max(1, Math.round(queue.oldest_ready_seconds)))),
            tone: queue.ready.count > 0 && queue.workers === 0 ? "problem" : undefined,
          },
          { label: figures.running, value: bounded(queue.running), note: queue.max_running === null ? figures.ofSlots(queue.slots, queue.workers) : figures.ofLimit(queue.max_running) },
          { label: figures.held, value: bounded(queue.held), note: figures.heldNote },
          { label: figures.scheduled, value: bounded(queue.scheduled), note: figures.scheduledNote },
          empty ?? { label: figures.empty, value: text.none },
        ]}
      />
      {grown !== null && grown !== 0 && queue.ready.count > 0 && <p className={styles.growth}>{grown > 0 ? words.growing(grown) : words.shrinking(-grown)}</p>}
    </>
  );
}

function Workers({ queue }: { queue: Queue }) {
  const found = useQuery(workersQuery());
  useLiveRefresh(() => void found.refetch(), { every: 5_000 });
  if (!found.data) return null;
  const serving = found.data.items.filter((worker) => queue.name in worker.queues);
  return (
    <Panel className={styles.part} title={words.workers} isFlush>
      {serving.length === 0 ? (
        <p className={styles.none}>{words.noWorkers}</p>
      ) : (
        <ul className={styles.workers} aria-label={words.workers}>
          {serving.map((worker) => (
            <li key={worker.id}>
              <Link to={`/workers/${worker.id}` as never}>{worker.name}</Link>
              <span className="quiet">{words.slotsOf(worker.queues[queue.name] ?? 0)}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
