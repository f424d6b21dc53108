import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useRouterState } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button } from "~/components/Button";
import { copy, CopyCommand, Id } from "~/components/Copy";
import { AskDialog, Dialog } from "~/components/Dialog";
import { Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { Icon } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { QueueLink, TaskLink } from "~/components/Places";
import { Skeleton } from "~/components/Skeleton";
import { StateBadge } from "~/components/StateBadge";
import { Tabs } from "~/components/Tabs";
import { Tags } from "~/components/Tag";
import { Duration, Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { useNow } from "~/model/clock";
import { ENDED } from "~/model/states";
import { withSubject } from "~/model/summary";
import { duration, millis } from "~/model/times";
import { sentence, text } from "~/texts/en";
import { AttemptsTab } from "./AttemptsTab";
import { CheckpointsTab, checkpointsQuery } from "./CheckpointsTab";
import { DataTab } from "./DataTab";
import { RerunDialog } from "./RerunDialog";
import { RunLog } from "./RunLog";
import { attemptsQuery, explainQuery, nameOfRun, runQueryOf, type WholeRun, workersQuery } from "./queries";
import { errorText } from "./RunCells";
import { commandsOf } from "./commands";
import { Timeline } from "./Timeline";
import { useRunActions } from "./useRunActions";
import { WhyTab } from "./WhyTab";
import { Detail } from "./Detail";
import styles from "./RunPage.module.css";

const TABS = ["log", "why", "data", "attempts", "checkpoints"] as const;
type Tab = (typeof TABS)[number];
const { facts } = text.run;

export function RunPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const named = useRouterState({ select: (state) => state.location.pathname.split("/").pop() ?? "" });
  const run = useQuery(runQueryOf(id));
  const attempts = useQuery(attemptsQuery(id));
  const isEnded = run.data ? ENDED.has(run.data.state) : false;
  // Only durable functions have them, and only after their first attempt has begun.
  const checkpoints = useQuery({ ...checkpointsQuery(id), enabled: run.data?.started_at != null, retry: false });
  useLiveRefresh(
    () => {
      void run.refetch();
      void attempts.refetch();
    },
    { isOn: !isEnded },
  );
  if (run.error && !run.data) return <Unavailable error={run.error} what={text.run.what} onRetry={() => void run.refetch()} />;
  if (!run.data) return <Skeleton lines={6} height="1.5rem" />;
  const hasBegun = run.data.started_at !== null || run.data.attempt > 0;
  const tab: Tab = (TABS as readonly string[]).includes(named) ? (named as Tab) : isEnded || hasBegun ? "log" : "why";
  const shown = run.data;
  return (
    <>
      <RunHeader run={shown} />
      <RunFacts run={shown} />
      <Timeline run={shown} attempts={attempts.data?.items ?? []} />
      <div className={styles.tabs}>
        <Tabs
          label={text.run.tabs.label}
          items={TABS.filter((name) => name !== "checkpoints" || tab === name || (checkpoints.data?.items.length ?? 0) > 0).map((name) => ({
            to: `/runs/${id}/${name}`,
            label: text.run.tabs[name],
            isCurrent: tab === name,
            badge: name === "attempts" && (attempts.data?.items.length ?? 0) > 1 ? attempts.data?.items.length : undefined,
          }))}
        />
      </div>
      {tab === "log" && <RunLog run={shown} attempts={attempts.data?.items ?? []} />}
      {tab === "why" && <WhyTab reference={id} run={shown} />}
      {tab === "data" && <DataTab run={shown} />}
      {tab === "checkpoints" && <CheckpointsTab id={id} isLive={!isEnded} />}
      {tab === "attempts" && <AttemptsTab run={shown} attempts={attempts.data?.items ?? []} />}
    </>
  );
}

function RunHeader({ run }: { run: WholeRun }) {
  const actions = useRunActions();
  const mayOperate = useMay("operate");
  const [dialog, setDialog] = useState<"rerun" | "stop" | "command" | null>(null);
  const isEnded = ENDED.has(run.state);
  const name = nameOfRun(run);
  useKeys([
    { key: "e", label: text.keys.why, icon: "help", run: () => document.querySelector<HTMLElement>(`a[href$="/runs/${run.id}/why"]`)?.click() },
    ...(mayOperate
      ? [
          isEnded
            ? { key: "t", label: text.run.rerun, icon: "rerun" as const, run: () => actions.rerun.mutate({ run }) }
            : { label: text.run.cancel, icon: "stop" as const, run: () => actions.cancel(run) },
        ]
      : []),
  ]);
  return (
    <>
      <PageHeader
        title={name}
        above={<Origin run={run} />}
        heading={
          <>
            {name} <StateBadge state={run.state} />
          </>
        }
        lead={<Lead run={run} />}
        actions={
          <>
            {mayOperate && !isEnded && (
              <Button icon="stop" onClick={() => actions.cancel(run)} blocked={run.cancel_requested ? text.run.cancelAsked : null}>
                {text.run.cancel}
              </Button>
            )}
            {mayOperate && isEnded && (
              <Button kind={run.state === "failed" ? "primary" : "plain"} icon="rerun" isBusy={actions.rerun.isPending} onClick={() => actions.rerun.mutate({ run })}>
                {text.run.rerun}
              </Button>
            )}
            <Menu
              label={text.moreActions}
              kind="plain"
              entries={[
                ...(mayOperate ? [{ label: text.run.rerunEdited, icon: "edit" as const, blocked: isEnded ? null : text.run.notEnded, onSelect: () => setDialog("rerun") }] : []),
                ...(mayOperate && !isEnded ? [{ label: text.run.force, icon: "bolt" as const, isDangerous: true, onSelect: () => setDialog("stop") }] : []),
                ...(run.task === "workflow" ? [{ label: text.workflows.step.openWorkflow, icon: "workflows" as const, onSelect: () => actions.openWorkflow(run.id) }] : []),
                ...(run.state === "failed" ? [{ label: text.run.alike, icon: "dead" as const, onSelect: () => actions.openFailures(run.task) }] : []),
                ...(run.rerun_of ? [{ label: text.run.compareWithFirst, icon: "columns" as const, onSelect: () => actions.compare(run.rerun_of ?? "", run.id) }] : []),
                { label: text.run.copyLink, icon: "link" as const, onSelect: () => void copy(location.href) },
                { label: text.run.copyCommand, icon: "copy" as const, onSelect: () => setDialog("command") },
              ]}
            />
          </>
        }
      />
      {dialog === "rerun" && <RerunDialog run={run} onClose={() => setDialog(null)} onRun={(payload) => actions.rerun.mutateAsync({ run, payload })} />}
      <AskDialog
        isOpen={dialog === "stop"}
        onClose={() => setDialog(null)}
        onConfirm={() => {
          actions.stop.mutate(run);
          setDialog(null);
        }}
        title={text.run.forceTitle}
        confirm={text.run.force}
        isDangerous
      >
        <p>{text.run.forceHint}</p>
      </AskDialog>
      <Dialog isOpen={dialog === "command"} onClose={() => setDialog(null)} title={text.run.commandTitle} width="medium">
        <div className={styles.commands}>
          {commandsOf(run).map((group) => (
            <section key={group.title}>
              <h3>{group.title}</h3>
              <CopyCommand commands={group.commands} />
            </section>
          ))}
        </div>
      </Dialog>
    </>
  );
}

/** Where it comes from: its job, its workflow, or the list of runs. */
function Origin({ run }: { run: WholeRun }) {
  return (
    <nav aria-label={text.run.facts.parent}>
      <Link to={"/runs" as never}>{text.nav.runs}</Link>
      <Icon name="chevron" size={12} />
      {run.job_id ? <Link to={`/jobs/${run.job_id}` as never}>{run.name ?? facts.job}</Link> : run.parent_id ? <Link to={`/workflows/${run.parent_id}` as never}>{facts.parent}</Link> : <span>{run.task}</span>}
      <Icon name="chevron" size={12} />
      <Id value={run.id} />
    </nav>
  );
}

/** One sentence about the state. */
function Lead({ run }: { run: WholeRun }) {
  const now = useNow();
  const explain = useQuery({ ...explainQuery(run.id), enabled: !ENDED.has(run.state) && run.state !== "running" });
  const { data: workers } = useQuery({ ...workersQuery(), enabled: run.state === "running" });
  const took = run.started_at && run.finished_at ? duration((millis(run.finished_at) - millis(run.started_at)) / 1000) : "";
  if (run.state === "running")
    return (
      <>
        {text.run.lead.running(duration(Math.max(0, (now - millis(run.started_at ?? now)) / 1000)), workers?.items.find((worker) => worker.id === run.worker_id)?.name ?? null)}
        <Progress value={run.progress} />
      </>
    );
  if (run.state === "succeeded") return text.run.lead.succeeded(took);
  if (run.state === "failed") return <span className={styles.failed}>{text.run.lead.failed(run.attempt, sentence(errorText(run.error) || run.reason || ""))}</span>;
  if (run.state === "cancelled") return sentence(run.reason ? `${text.run.lead.cancelled.slice(0, -1)}: ${run.reason}` : text.run.lead.cancelled);
  if (run.state === "skipped") return sentence(run.reason ? `${text.run.lead.skipped.slice(0, -1)}: ${run.reason}` : text.run.lead.skipped);
  return explain.data ? <Detail words={sentence(withSubject(explain.data.summary))} /> : text.stateMeanings[run.state as "held"];
}

function Progress({ value }: { value: unknown }) {
  const progress = value as { share?: number | null; message?: string | null } | null;
  if (!progress || progress.share == null) return null;
  const percent = Math.round(Math.min(1, Math.max(0, progress.share)) * 100);
  return (
    <div className={styles.progress}>
      <progress max={100} value={percent} aria-label={progress.message ?? `${percent} %`} />
      <span className="number">{percent} %</span>
      {progress.message && <span className="quiet">{progress.message}</span>}
    </div>
  );
}

function RunFacts({ run }: { run: WholeRun }) {
  const { data: workers } = useQuery({ ...workersQuery(), enabled: run.worker_id !== null });
  const worker = workers?.items.find((one) => one.id === run.worker_id);
  const link = (id: string) => <Link to={`/runs/${id}` as never} className="mono">…{id.slice(-8)}</Link>;
  return (
    <div className={styles.facts}>
      <Facts
        columns
        items={[
          [facts.task, <TaskLink key="k" name={run.task} />],
          [facts.queue, <QueueLink key="q" name={run.queue} />],
          run.attempt > 0 && [facts.attempt, run.attempt],
          run.worker_id && [facts.worker, worker ? <Link key="w" to={`/workers/${run.worker_id}` as never}>{worker.name}</Link> : <Id key="w" value={run.worker_id} />],
          run.tick_at ? [facts.tick, <Time key="t" at={run.tick_at} form="absolute" withoutZone isFocusable />] : !run.started_at && [facts.due, <Time key="d" at={run.scheduled_at} form="both" withoutZone isFocusable />],
          run.started_at && [facts.started, <Time key="s" at={run.started_at} form="absolute" withoutZone isFocusable />],
          run.started_at && (run.state === "running" || run.finished_at) && [facts.took, <Duration key="d" since={run.started_at} until={run.finished_at} />],
          run.priority !== 0 && [facts.priority, run.priority],
          run.rerun_of && [facts.rerunOf, link(run.rerun_of)],
          run.rerun_as && [facts.rerunAs, link(run.rerun_as)],
          run.trace_url && [facts.trace, <a key="r" href={run.trace_url} target="_blank" rel="noreferrer" className="mono">…{(run.trace_id ?? "").slice(-8)}</a>],
          run.unique_key && [facts.unique, run.unique_key],
          run.expires_at && [facts.expires, <Time key="e" at={run.expires_at} form="both" withoutZone isFocusable />],
          run.tags.length > 0 && [facts.tags, <Tags key="g" names={run.tags} most={6} isLink />],
        ]}
      />
    </div>
  );
}
