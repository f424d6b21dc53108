import { toast, toastProblem } from "~/components/Toast";
import type { RunQuery } from "~/model/runFilter";
import { csvOf } from "~/model/csv";
import { saveFile } from "~/model/saveFile";
import { text } from "~/texts/en";
import { type Run, runPage } from "./queries";

const MOST = 20_000;
const COLUMNS = ["id", "name", "task", "queue", "state", "status", "reason", "attempt", "priority", "created_at", "scheduled_at", "started_at", "finished_at", "job_id", "tick_at", "worker_id", "tags", "error"] as const;

/** Saves the runs that fit as a file, up to 20,000 of them. */
export async function exportRuns(query: RunQuery, form: "csv" | "json"): Promise<void> {
  const rows: Run[] = [];
  let after: string | undefined;
  try {
    do {
      const page = await runPage(query, after, new AbortController().signal, 200);
      rows.push(...page.items);
      after = page.next ?? undefined;
    } while (after && rows.length < MOST);
  } catch (error) {
    toastProblem(error);
    return;
  }
  const content = form === "json" ? JSON.stringify(rows, null, 1) : csvOf(COLUMNS, rows.map((run) => COLUMNS.map((name) => run[name])));
  saveFile(content, `runs.${form}`, form === "json" ? "application/json" : "text/csv");
  toast({ message: text.list.exported(rows.length, after !== undefined) });
}
