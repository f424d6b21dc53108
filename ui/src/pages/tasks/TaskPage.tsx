import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import type { TaskDetails } from "~/api/schema";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { Icon } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { Figures, Panel } from "~/components/Panel";
import { Skeleton } from "~/components/Skeleton";
import { Tags } from "~/components/Tag";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { number, percent } from "~/model/numbers";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import { words } from "~/texts/tasks";
import { words as deadWords } from "~/texts/dead";
import { groupsQuery } from "../dead/queries";
import { PauseForm } from "../pauses/PauseForm";
import { type Stop, stopsQuery } from "../pauses/queries";
import { usePauseActions } from "../pauses/usePauseActions";
import { RunList } from "../runs/RunList";
import { DeadGroups } from "./DeadGroups";
import { Offering, Parameters, Versions } from "./Parameters";
import { circuitsQuery, conditionOf, isFailing, taskCommands, taskQuery } from "./queries";
import { RunDialog } from "./RunDialog";
import { Condition } from "./TasksPage";
import styles from "./tasks.module.css";

export function TaskPage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const found = useQuery(taskQuery(name));
  useLiveRefresh(() => void found.refetch(), { every: 10_000 });
  const dead = useQuery(groupsQuery({ task: name }));
  useLiveRefresh(() => void dead.refetch(), { every: 5_000 });
  if (found.error && !found.data) return <Unavailable error={found.error} what={words.one} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={8} height="1.5rem" />;
  const task = found.data;
  return (
    <>
      <TaskHeader key={task.name} task={task} />
      <Numbers task={task} />
      <Breaker name={task.name} />
      <div className={styles.part}>
        <Parameters task={task} />
      </div>
      {task.live_versions.length > 1 ? <Versions task={task} /> : <Offering task={task} />}
      {dead.data && dead.data.items.length > 0 && <DeadGroups groups={dead.data.items} task={task.name} />}
      <Panel className={styles.part} title={words.runs} isFlush>
        <RunList name="task-runs" query={{ task: task.name }} empty={<EmptyState icon="runs" title={words.noRuns} />} />
      </Panel>
    </>
  );
}

const refresh = () => void queryClient.invalidateQueries();

function useSwitch(name: string) {
  const path = { params: { path: { name } } };
  const enable = useMutation({
    mutationFn: () => data(client.POST("/v1/tasks/{name}/enable", path)),
    onSuccess: () => {
      toast({ message: words.enabledDone(name) });
      refresh();
    },
    onError: toastProblem,
  });
  const disable = useMutation({
    mutationFn: () => data(client.POST("/v1/tasks/{name}/disable", path)),
    onSuccess: () => {
      toast({ message: words.disabledDone(name), action: { label: text.undo, run: () => enable.mutate() } });
      refresh();
    },
    onError: toastProblem,
  });
  return { enable, disable };
}

function TaskHeader({ task }: { task: TaskDetails }) {
  const maySubmit = useMay("submit");
  const mayOperate = useMay("operate");
  const mayAdminister = useMay("administer");
  const navigate = useNavigate();
  const { end } = usePauseActions();
  const { enable, disable } = useSwitch(task.name);
  const stops = useQuery(stopsQuery());
  const circuits = useQuery(circuitsQuery());
  useLiveRefresh(
    () => {
      void stops.refetch();
      void circuits.refetch();
    },
    { every: 2_000 },
  );
  const [dialog, setDialog] = useState<"run" | "pause" | "change" | "command" | null>(null);
  const close = () => setDialog(null);
  const items = stops.data?.items ?? [];
  const pause = items.find((stop) => stop.kind === "task" && stop.name === task.name) ?? null;
  const condition = conditionOf(task, items, circuits.data ?? []);
  const blocked = task.is_disabled ? words.disabledBlocked : null;
  const toggle = () => (pause ? end.mutate(pause) : setDialog("pause"));
  useKeys([
    ...(maySubmit ? [{ key: "t", label: words.run, icon: "play" as const, run: () => !blocked && setDialog("run") }] : []),
    ...(mayOperate ? [{ key: "p", label: pause ? words.resume : words.pause, icon: "pause" as const, run: toggle }] : []),
  ]);
  return (
    <>
      <PageHeader
        title={task.name}
        above={
          <nav aria-label={words.title}>
            <Link to={"/tasks" as never}>{words.title}</Link>
          </nav>
        }
        heading={
          <>
            {task.name} <Condition condition={condition} />
          </>
        }
        lead={pause ? <PausedLead stop={pause} /> : condition === "ready" ? task.description || words.meanings.ready : words.meanings[condition]}
        actions={
          <>
            {maySubmit && (
              <Button kind="primary" icon="play" blocked={blocked} onClick={() => setDialog("run")}>
                {words.run}
              </Button>
            )}
            {mayOperate && (
              <Button icon={pause ? "play" : "pause"} isBusy={end.isPending} onClick={toggle}>
                {pause ? words.resume : words.pause}
              </Button>
            )}
            <Menu
              label={text.moreActions}
              kind="plain"
              entries={[
                ...(mayOperate && pause ? [{ label: words.changePause, icon: "edit" as const, onSelect: () => setDialog("change") }] : []),
                { label: deadWords.title, icon: "dead", onSelect: () => void navigate({ to: "/dead" as never, search: { task: task.name } as never }) },
                { label: words.commands, icon: "copy", onSelect: () => setDialog("command") },
                ...(mayAdminister && task.is_built_in
                  ? [task.is_disabled ? { label: words.enable, icon: "check" as const, onSelect: () => enable.mutate() } : { label: words.disable, icon: "lock" as const, isDangerous: true, onSelect: () => disable.mutate() }]
                  : []),
              ]}
            />
          </>
        }
      />
      <div className={styles.facts}>
        <Facts
          columns
          items={[
            [<Explained key="h" text={words.queueHint}>{words.facts.queue}</Explained>, <Link key="q" to={`/queues/${encodeURIComponent(task.queue)}` as never}>{task.queue}</Link>],
            task.guarantee && [words.facts.guarantee, <span key="g" className="mono">{task.guarantee}</span>],
            task.tags.length > 0 && [words.facts.tags, <Tags key="t" names={task.tags} isLink most={6} />],
            [words.facts.announced, <Time key="a" at={task.announced_at} isFocusable />],
          ]}
        />
      </div>
      {dialog === "run" && <RunDialog task={task} onClose={close} />}
      {(dialog === "pause" || dialog === "change") && <PauseForm stop={dialog === "change" ? pause : null} kinds={["task"]} of={{ kind: "task", name: task.name }} onClose={close} />}
      <Dialog isOpen={dialog === "command"} onClose={close} title={words.commandTitle} width="medium">
        <CopyCommand commands={taskCommands(task)} />
      </Dialog>
    </>
  );
}

function PausedLead({ stop }: { stop: Stop }) {
  return (
    <>
      {stop.until ? (
        <>
          {words.pausedUntil} <Time at={stop.until} form="absolute" isFocusable />.
        </>
      ) : (
        words.meanings.paused
      )}
      {stop.reason && <bdi>{` ${stop.reason}`}</bdi>}
    </>
  );
}

function Numbers({ task }: { task: TaskDetails }) {
  const { figures } = words;
  const seen = task.statistics;
  return (
    <Figures
      items={[
        { label: figures.workers, value: number(task.workers), note: task.workers === 0 ? figures.noWorkers : figures.versions(task.versions), tone: task.workers === 0 ? "problem" : undefined },
        { label: figures.p50, value: seen?.p50_seconds == null ? text.none : duration(seen.p50_seconds) },
        { label: figures.p95, value: seen?.p95_seconds == null ? text.none : duration(seen.p95_seconds) },
        { label: figures.ended, value: seen ? number(seen.ended) : "0", note: figures.endedNote },
        { label: figures.failed, value: seen && seen.ended > 0 ? percent(seen.failed / seen.ended) : text.none, note: seen ? figures.failedNote(seen.failed) : figures.none, tone: seen && isFailing(seen) ? "problem" : undefined },
      ]}
    />
  );
}

/** The circuit breaker, while the last run of the task has failed. */
function Breaker({ name }: { name: string }) {
  const mayOperate = useMay("operate");
  const circuits = useQuery(circuitsQuery());
  const { end } = usePauseActions();
  const circuit = circuits.data?.find((one) => one.task === name);
  if (!circuit) return null;
  const isOpen = circuit.open_until !== null;
  return (
    <section className={styles.breaker} data-open={isOpen || undefined} aria-label={words.circuit}>
      <Icon name={isOpen ? "unplugged" : "warning"} size={20} />
      <p>
        {!isOpen ? (
          words.circuitClosed(circuit.failures)
        ) : circuit.probe_id !== null ? (
          words.circuitProbing(circuit.failures)
        ) : (
          <>
            {words.circuitOpen(circuit.failures)} <Time at={circuit.open_until} isFocusable />.
          </>
        )}
      </p>
      {mayOperate && isOpen && (
        <Button size="small" isBusy={end.isPending} onClick={() => end.mutate({ kind: "circuit", name, since: null, until: null, reason: null, actor: null })}>
          {words.closeCircuit}
        </Button>
      )}
    </section>
  );
}
