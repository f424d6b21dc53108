import { ProgressBar } from "~/components/ProgressBar";
import { StateBadge } from "~/components/StateBadge";
import { number } from "~/model/numbers";
import { ENDED } from "~/model/states";
import { text } from "~/texts/en";
import styles from "./cells.module.css";
import type { Workflow } from "./queries";

const { workflows: words } = text;

/** A workflow waits for its steps, which people call running. */
export function WorkflowState({ workflow, isQuiet }: { workflow: Workflow; isQuiet?: boolean }) {
  return <StateBadge state={stateOfWorkflow(workflow)} isQuiet={isQuiet} explain={false} />;
}

export function stateOfWorkflow(workflow: Workflow): string {
  if (ENDED.has(workflow.state)) return workflow.state;
  return workflow.status === "running" ? "running" : workflow.state;
}

/** Without the kind of the error, which says no more than the message. */
export function messageOf(error: unknown): string {
  const { message, kind } = (error ?? {}) as { message?: string; kind?: string };
  return message || kind || "";
}

export function nameOfWorkflow(workflow: Workflow): string {
  return workflow.name ?? words.unnamed;
}

export function WorkflowProgress({ workflow }: { workflow: Workflow }) {
  const { succeeded, failed, cancelled, skipped, total, unfinished } = workflow.progress;
  return (
    <span className={styles.progress}>
      <ProgressBar counts={{ succeeded, failed, cancelled, skipped }} total={total} label={words.progress} />
      <span className={styles.count}>
        {number(total - unfinished)} / {number(total)}
      </span>
    </span>
  );
}
