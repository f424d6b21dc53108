import type { IconName } from "~/components/Icon";

export const STATES = [
  "waiting",
  "scheduled",
  "held",
  "ready",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "skipped",
] as const;

export type RunState = (typeof STATES)[number];
/** States and outcomes share a set of colours: `tone` names the token, such as --failed-solid. */
export type Tone = RunState;

export const LIVE: ReadonlySet<string> = new Set(["waiting", "scheduled", "held", "ready", "running"]);
export const ENDED: ReadonlySet<string> = new Set(["succeeded", "failed", "cancelled", "skipped"]);

export const ICONS: Record<RunState, IconName> = {
  waiting: "hourglass",
  scheduled: "clock",
  held: "hand",
  ready: "dot",
  running: "play",
  succeeded: "check",
  failed: "close",
  cancelled: "slash",
  skipped: "skip",
};

export function isState(word: string): word is RunState {
  return (STATES as readonly string[]).includes(word);
}

/** Outcomes of due ticks, with the tone that shows them. */
export const TICK_OUTCOMES = {
  succeeded: "succeeded",
  failed: "failed",
  running: "running",
  ready: "ready",
  scheduled: "scheduled",
  waiting: "waiting",
  cancelled: "cancelled",
  held: "held",
  overlap: "held",
  missed: "failed",
  superseded: "skipped",
  paused: "waiting",
  excluded: "skipped",
  skipped: "skipped",
} as const satisfies Record<string, Tone>;

export function toneOfTick(outcome: string): Tone {
  return (TICK_OUTCOMES as Record<string, Tone>)[outcome] ?? "waiting";
}
