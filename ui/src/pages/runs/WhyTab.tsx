import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import type { Gate } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { classes } from "~/components/classes";
import { CopyCommand, Id } from "~/components/Copy";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Icon } from "~/components/Icon";
import { Skeleton } from "~/components/Skeleton";
import { StateBadge } from "~/components/StateBadge";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { toast, toastProblem } from "~/components/Toast";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { ENDED } from "~/model/states";
import { withSubject } from "~/model/summary";
import { sentence, text } from "~/texts/en";
import { LimitsDialog } from "../queues/LimitsDialog";
import { Detail } from "./Detail";
import { explainQuery } from "./queries";
import { SignalDialog } from "./SignalDialog";
import styles from "./WhyTab.module.css";

const { why } = text.run;

/** What is explained: a run, or with only its reference anything else. */
interface About {
  id: string;
  state: string;
  queue?: string;
  task?: string;
}

/** The gates in order. The first closed one is said as a sentence, with what opens it. As a part of a page that says how
 * things are, it is silent while all gates are open. */
export function WhyTab({ reference, run, isPart }: { reference: string; run?: About; isPart?: boolean }) {
  const isOver = run ? ENDED.has(run.state) : false;
  const explain = useQuery({ ...explainQuery(reference), enabled: !isOver });
  useLiveRefresh(() => void explain.refetch(), { isOn: !isOver });
  if (isOver) return <EmptyState icon="check" title={why.ended} />;
  if (explain.error && !explain.data) return <Unavailable level={2} error={explain.error} what={text.run.what} onRetry={() => void explain.refetch()} />;
  if (!explain.data) return <Skeleton lines={5} />;
  const { gates, summary, state } = explain.data;
  const closed = gates.find((gate) => !gate.is_open);
  const listed = isPart ? gates.filter((gate) => gate !== closed) : gates;
  return (
    <div className={styles.why}>
      {(closed || !isPart) && (
        <div className={classes(styles.answer, closed ? styles.closed : styles.free)}>
          <Icon name={closed ? "hand" : state === "running" ? "play" : "check"} size={22} />
          <div>
            <p className={styles.sentence}>{closed ? <Detail words={sentence(withSubject(summary))} /> : state === "running" ? why.running : <Detail words={sentence(summary)} />}</p>
            {closed && <GateAction gate={closed} about={run ?? { id: reference, state }} />}
          </div>
        </div>
      )}
      {!isPart && <h2>{why.gates}</h2>}
      <ol className={styles.gates}>
        {listed.map((gate) => (
          <GateRow key={gate.gate} gate={gate} isFirst={gate === closed} />
        ))}
      </ol>
    </div>
  );
}

function GateRow({ gate, isFirst }: { gate: Gate; isFirst: boolean }) {
  const [name, told] = text.run.gates[gate.gate] ?? [gate.gate, ""];
  return (
    <li className={classes(styles.gate, !gate.is_open && styles.shut, isFirst && styles.first)}>
      <span className={styles.mark}>
        <Icon name={gate.is_open ? "check" : "close"} size={14} strokeWidth={2.4} />
        <span className="visually-hidden">{gate.is_open ? why.open : why.closed}</span>
      </span>
      <span className={styles.name}>{told ? <Explained text={told}>{name}</Explained> : name}</span>
      <span className={styles.detail}>
        <Detail words={sentence(gate.detail)} />
      </span>
    </li>
  );
}

function GateAction({ gate, about }: { gate: Gate; about: About }) {
  const mayOperate = useMay("operate");
  const [dialog, setDialog] = useState<{ kind: "approve" | "refuse" | "limit"; name?: string } | null>(null);
  const numbers = (gate.numbers ?? {}) as Record<string, unknown>;
  const close = () => setDialog(null);
  const action = actionOf(gate.gate, numbers, about, mayOperate, setDialog);
  if (!action) return null;
  return (
    <div className={styles.action}>
      {action}
      {dialog && dialog.kind !== "limit" && <SignalDialog id={about.id} isApproval={dialog.kind === "approve"} name={dialog.name} onClose={close} />}
      {dialog?.kind === "limit" && about.queue && <LimitsDialog queue={about.queue} onClose={close} />}
    </div>
  );
}

/** What opens a gate. What only shows the way is for everybody. */
function actionOf(kind: string, numbers: Record<string, unknown>, about: About, mayOperate: boolean, open: (dialog: { kind: "approve" | "refuse" | "limit"; name?: string }) => void): ReactNode {
  const signals = (Array.isArray(numbers.signals) ? numbers.signals : []) as string[];
  const holders = (Array.isArray(numbers.held_by) ? numbers.held_by : []) as string[];
  switch (kind) {
    case "dependencies":
      return <Upstream runs={numbers.upstream} />;
    case "children":
      return <Upstream runs={numbers.open} />;
    case "overlap":
      return typeof numbers.blocked_by === "string" ? <Link to={`/runs/${numbers.blocked_by}` as never}>{why.blocker}</Link> : null;
    case "concurrency":
      return holders.length === 0 ? null : (
        <>
          <span>{why.holders}</span>
          {holders.map((id) => (
            <Link key={id} to={`/runs/${id}` as never} className="mono">
              …{id.slice(-8)}
            </Link>
          ))}
        </>
      );
    case "rate":
      return typeof numbers.free_at === "string" ? (
        <span>
          {why.freeAt} <Time at={numbers.free_at} form="both" isFocusable />
        </span>
      ) : null;
    case "worker":
      return Number(numbers.serving ?? 0) > 0 && Number(numbers.knowing ?? 0) > 0 ? <Link to={"/workers" as never}>{why.workers}</Link> : <StartWorker queue={about.queue} />;
    case "line":
      return about.queue ? <Link to={"/runs" as never} search={{ q: `queue:${about.queue} state:ready` } as never}>{why.ahead}</Link> : null;
    case "circuit":
      return about.task ? <Circuit task={about.task} mayOperate={mayOperate} /> : null;
  }
  if (!mayOperate) return null;
  switch (kind) {
    case "pause":
      return <Resume numbers={numbers} reference={about.id} />;
    case "signal":
      return (
        <>
          <Button kind="primary" icon="check" onClick={() => open({ kind: "approve" })}>
            {why.approve}
          </Button>
          <Button icon="close" onClick={() => open({ kind: "refuse" })}>
            {why.refuse}
          </Button>
        </>
      );
    case "function":
      return signals.length === 0 ? null : (
        <>
          {signals.slice(0, 3).map((name) => (
            <Button key={name} kind="primary" icon="check" onClick={() => open({ kind: "approve", name })}>
              {why.signalNamed(name)}
            </Button>
          ))}
        </>
      );
    case "queue_limit":
    case "depth":
      return about.queue ? (
        <Button kind="primary" onClick={() => open({ kind: "limit" })}>
          {why.raise}
        </Button>
      ) : null;
  }
  return null;
}

/** Closes the circuit breaker of a task, once its failures have been looked at. */
function Circuit({ task, mayOperate }: { task: string; mayOperate: boolean }) {
  const close = useMutation({
    mutationFn: () => data(client.POST("/v1/circuits/{name}/close", { params: { path: { name: task } } })),
    onSuccess: () => {
      toast({ message: why.circuitClosed });
      void queryClient.invalidateQueries();
    },
    onError: toastProblem,
  });
  return (
    <>
      {mayOperate && (
        <Button kind="primary" icon="play" isBusy={close.isPending} onClick={() => close.mutate()}>
          {why.closeCircuit}
        </Button>
      )}
      <Link to={"/dead" as never} search={{ task } as never}>
        {why.failures}
      </Link>
    </>
  );
}

function Upstream({ runs }: { runs: unknown }) {
  const upstream = (Array.isArray(runs) ? runs : []) as { id: string; name: string | null; state: string }[];
  return (
    <ul className={styles.upstream}>
      {upstream.map((one) => (
        <li key={one.id}>
          <StateBadge state={one.state} />
          <Link to={`/runs/${one.id}` as never}>{one.name ?? <Id value={one.id} />}</Link>
        </li>
      ))}
    </ul>
  );
}

function StartWorker({ queue }: { queue: string | undefined }) {
  return (
    <div className={styles.command}>
      <p>{why.startWorker}</p>
      <CopyCommand commands={[{ label: "foliot", command: `foliot worker${queue ? ` --queue ${queue}` : ""}` }]} />
    </div>
  );
}

function Resume({ numbers, reference }: { numbers: Record<string, unknown>; reference: string }) {
  const kind = typeof numbers.kind === "string" ? numbers.kind : "job";
  const name = typeof numbers.name === "string" ? numbers.name : reference;
  const resume = useMutation({
    mutationFn: async () => {
      const params = { params: { path: { name } } };
      if (kind === "queue") return data(client.POST("/v1/queues/{name}/resume", params));
      if (kind === "task") return data(client.POST("/v1/tasks/{name}/resume", params));
      if (kind === "everything") return data(client.POST("/v1/resume", {}));
      return data(client.POST("/v1/jobs/{reference}/resume", { params: { path: { reference } } }) as never);
    },
    onSuccess: () => {
      toast({ message: why.resumed });
      void queryClient.invalidateQueries();
    },
    onError: toastProblem,
  });
  const labels: Record<string, string> = { queue: why.resumeQueue, task: why.resumeTask, everything: why.resumeAll, job: why.resumeJob };
  return (
    <Button kind="primary" icon="play" isBusy={resume.isPending} onClick={() => resume.mutate()}>
      {labels[kind] ?? why.resumeJob}
    </Button>
  );
}
