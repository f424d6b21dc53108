import type { OverviewShown } from "~/api/schema";
import { roughly } from "./times";
import { overview } from "~/texts/overview";

const { health: words } = overview;
/** A wait that nobody minds. */
const PATIENCE_SECONDS = 30;

/** The state of the namespace in one or two sentences: the worst first. */
export function healthOf(seen: OverviewShown): { tone: "good" | "warning" | "bad"; sentence: string } {
  const waits = seen.oldest_ready_seconds !== null && seen.oldest_ready_seconds >= PATIENCE_SECONDS && seen.oldest_ready_queue !== null;
  const waiting = waits ? words.waits(seen.oldest_ready_queue ?? "", roughly(Math.round(seen.oldest_ready_seconds ?? 0))) : null;
  const failing = seen.attention.filter((entry) => entry.kind === "failing_job").length;
  if (seen.attention.some((entry) => entry.kind === "pause" && entry.of === "everything")) return { tone: "warning", sentence: words.paused };
  if (seen.late_ticks.count > 0)
    return { tone: "bad", sentence: [words.late(seen.late_ticks.count, roughly(Math.round(seen.late_seconds ?? 0))), waiting].filter(Boolean).join(" ") };
  if (seen.workers === 0 && seen.ready.count > 0) return { tone: "bad", sentence: words.noWorker };
  if (waiting) return { tone: "warning", sentence: `${words.good} ${waiting}` };
  if (failing > 0) return { tone: "warning", sentence: `${words.good} ${words.failing(failing)}` };
  return { tone: "good", sentence: `${words.good} ${words.fine}` };
}
