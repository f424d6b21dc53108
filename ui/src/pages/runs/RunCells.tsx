import { Link } from "@tanstack/react-router";
import { Tags } from "~/components/Tag";
import { ENDED } from "~/model/states";
import { nameOfRun, type Run } from "./queries";
import styles from "./RunCells.module.css";

export function errorText(error: unknown): string {
  if (!error || typeof error !== "object") return "";
  const { kind, message } = error as { kind?: string; message?: string };
  return [kind, message].filter(Boolean).join(": ");
}

/** The name of a run as a link, with what tells it apart: its task, its tags, its error. */
export function RunName({ run }: { run: Run }) {
  const error = run.state === "failed" || (run.error && !ENDED.has(run.state)) ? errorText(run.error) : "";
  return (
    <span className={styles.name}>
      <Link to={"/runs/$id" as never} params={{ id: run.id } as never} data-link className={styles.link}>
        {nameOfRun(run)}
      </Link>
      {run.name && run.name !== run.task && <span className={styles.task}>{run.task}</span>}
      {error ? <span className={styles.error}>{error}</span> : <Tags names={run.tags} most={2} />}
    </span>
  );
}
