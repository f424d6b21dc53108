import { Link, useParams, useRouterState, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { asApiError } from "~/api/problems";
import { useMay } from "~/api/session";
import { useKeys } from "~/app/keys";
import { Button } from "~/components/Button";
import { copy, CopyCommand, Id } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { EmptyState, Unavailable } from "~/components/EmptyState";
import { Facts } from "~/components/Facts";
import { Icon } from "~/components/Icon";
import { Menu } from "~/components/Menu";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { Tabs } from "~/components/Tabs";
import { Duration, Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { ENDED } from "~/model/states";
import { duration, millis } from "~/model/times";
import { sentence, text } from "~/texts/en";
import { CancelDialog } from "./CancelDialog";
import { messageOf, nameOfWorkflow, stateOfWorkflow, WorkflowProgress, WorkflowState } from "./cells";
import { commandsOf } from "./commands";
import { GanttTab } from "./GanttTab";
import { GraphTab } from "./GraphTab";
import { useWorkflow, type Workflow, type WorkflowLook } from "./queries";
import { RedriveDialog } from "./RedriveDialog";
import { StepsTab } from "./StepsTab";
import styles from "./WorkflowPage.module.css";

const { workflows: words } = text;
const TABS = ["graph", "gantt", "steps"] as const;

export function WorkflowPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const { step } = useSearch({ strict: false }) as { step?: string };
  const named = useRouterState({ select: (state) => state.location.pathname.split("/").pop() ?? "" });
  const { look, error, reload } = useWorkflow(id);
  if (!look && error) {
    if (asApiError(error).kind !== "not_found") return <Unavailable error={error} what={words.one} onRetry={reload} />;
    // The items of a map name it like the steps of a workflow do.
    return (
      <EmptyState level={1} icon="search" title={text.empty.notFound(words.one)} action={<Link to={`/runs/${id}` as never}>{words.openRun}</Link>}>
        <p>{words.notAWorkflow}</p>
      </EmptyState>
    );
  }
  if (!look) return <Skeleton lines={6} height="1.5rem" />;
  const tab = (TABS as readonly string[]).includes(named) ? named : "graph";
  return (
    <div className={step && tab !== "gantt" ? styles.besidePanel : undefined}>
      <Header look={look} onChange={reload} />
      <div className={styles.tabs}>
        <Tabs
          label={words.tabs.label}
          items={TABS.map((name) => ({ to: `/workflows/${id}/${name}`, label: words.tabs[name], isCurrent: tab === name, badge: name === "steps" ? look.steps.length : undefined }))}
        />
      </div>
      {tab === "graph" && <GraphTab look={look} name={nameOfWorkflow(look.workflow)} />}
      {tab === "gantt" && <GanttTab look={look} />}
      {tab === "steps" && <StepsTab look={look} />}
    </div>
  );
}

function Header({ look, onChange }: { look: WorkflowLook; onChange: () => void }) {
  const { workflow } = look;
  const [dialog, setDialog] = useState<"redrive" | "cancel" | "command" | null>(null);
  const mayOperate = useMay("operate");
  const maySubmit = useMay("submit");
  const isEnded = ENDED.has(workflow.state);
  const name = nameOfWorkflow(workflow);
  const { failed, cancelled } = workflow.progress;
  const whyNot = !isEnded ? words.redriveBlocked.live : failed + cancelled === 0 ? words.redriveBlocked.good : null;
  const close = () => setDialog(null);
  const done = () => {
    close();
    onChange();
  };
  useKeys([
    ...(maySubmit && isEnded && !whyNot ? [{ key: "t", label: words.redrive, icon: "rerun" as const, run: () => setDialog("redrive") }] : []),
    ...(mayOperate && !isEnded ? [{ label: words.cancel, icon: "stop" as const, run: () => setDialog("cancel") }] : []),
  ]);
  return (
    <>
      <PageHeader
        title={name}
        above={
          <nav aria-label={words.title}>
            <Link to={"/workflows" as never}>{words.title}</Link>
            <Icon name="chevron" size={12} />
            {workflow.name && (
              <>
                <Link to={`/workflows/by-name/${encodeURIComponent(workflow.name)}` as never}>{words.allRuns}</Link>
                <Icon name="chevron" size={12} />
              </>
            )}
            <Id value={workflow.id} />
          </nav>
        }
        heading={
          <>
            {name} <WorkflowState workflow={workflow} />
          </>
        }
        lead={<Lead workflow={workflow} />}
        actions={
          <>
            {mayOperate && !isEnded && (
              <Button icon="stop" onClick={() => setDialog("cancel")}>
                {words.cancel}
              </Button>
            )}
            {maySubmit && isEnded && (
              <Button kind={workflow.state === "failed" ? "primary" : "plain"} icon="rerun" blocked={whyNot} onClick={() => setDialog("redrive")}>
                {words.redrive}
              </Button>
            )}
            <Menu
              label={text.moreActions}
              kind="plain"
              entries={[
                { label: text.run.copyLink, icon: "link" as const, onSelect: () => void copy(location.href) },
                { label: text.run.copyCommand, icon: "copy" as const, onSelect: () => setDialog("command") },
              ]}
            />
          </>
        }
      />
      <div className={styles.facts}>
        <Facts
          columns
          items={[
            [words.facts.steps, <WorkflowProgress key="p" workflow={workflow} />],
            [words.facts.started, <Time key="s" at={workflow.created_at} form="absolute" withoutZone isFocusable />],
            [words.facts.took, <Duration key="t" since={workflow.created_at} until={workflow.finished_at} />],
            workflow.job_id && [words.facts.job, <Link key="j" to={`/jobs/${workflow.job_id}` as never}>{name}</Link>],
            workflow.tick_at && [words.facts.tick, <Time key="k" at={workflow.tick_at} form="absolute" withoutZone isFocusable />],
            [words.facts.onFailure, <Explained key="f" text={words.onFailure[workflow.on_failure]}>{words.onFailureWords[workflow.on_failure] ?? workflow.on_failure}</Explained>],
            [words.runOf, <Link key="r" to={`/runs/${workflow.run_id}/data` as never} className="mono">…{workflow.run_id.slice(-8)}</Link>],
          ]}
        />
      </div>
      {dialog === "redrive" && <RedriveDialog workflow={workflow} onClose={close} onDone={done} />}
      {dialog === "cancel" && <CancelDialog workflow={workflow} hasTeardown={look.steps.some((step) => step.rule === "always")} onClose={close} onDone={done} />}
      <Dialog isOpen={dialog === "command"} onClose={close} title={text.run.commandTitle} width="medium">
        <div className={styles.commands}>
          {commandsOf(workflow).map((group) => (
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

function Lead({ workflow }: { workflow: Workflow }) {
  const { total, unfinished, failed } = workflow.progress;
  const { leads } = words;
  const took = workflow.finished_at ? duration((millis(workflow.finished_at) - millis(workflow.created_at)) / 1000) : "";
  const state = stateOfWorkflow(workflow);
  if (state === "succeeded") return leads.completed(took);
  if (state === "failed") {
    const why = messageOf(workflow.error);
    return <span className={styles.failed}>{failed > 1 || !why ? leads.failed(failed) : sentence(why)}</span>;
  }
  if (state === "cancelled") return leads.cancelled;
  if (state === "running") return leads.running(total - unfinished, total);
  return leads.waiting;
}
