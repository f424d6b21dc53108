import { type Tone, toneOfTick } from "./states";

export interface TickLike {
  tick_at: string;
  until_at: string | null;
  outcome: string;
  run_id: string | null;
}

/** Ticks that made no run. */
const WITHOUT_RUN = new Set(["overlap", "missed", "superseded", "paused", "excluded"]);

export function isHollow(tick: TickLike): boolean {
  return WITHOUT_RUN.has(tick.outcome);
}

export function toneOf(tick: TickLike): Tone {
  return toneOfTick(tick.outcome);
}

/** The worst first: what somebody should look at. */
const BY_WEIGHT = ["failed", "missed", "overlap", "cancelled", "superseded", "skipped", "paused", "excluded", "running", "held", "ready", "scheduled", "succeeded"];

/** One that is not known counts as bad as a missed tick. */
export function worstFirst(outcomes: readonly string[]): string[] {
  const weight = (outcome: string) => (BY_WEIGHT.includes(outcome) ? BY_WEIGHT.indexOf(outcome) : 1);
  return [...outcomes].sort((one, other) => weight(one) - weight(other));
}

/** The outcome that stands for many. */
export function worstOutcome(outcomes: readonly string[]): string | null {
  return worstFirst(outcomes)[0] ?? null;
}

export interface TickSums {
  /** Of the runs that ended, the share that ended well; null without any. */
  successShare: number | null;
  ended: number;
  /** Outcomes with their counts, the most frequent first. */
  outcomes: [string, number][];
}

/** Of the runs that ended, the share that ended well. */
export function successOf(outcomes: readonly (readonly [string, number])[]): { share: number | null; ended: number } {
  const counts = new Map(outcomes);
  const good = counts.get("succeeded") ?? 0;
  const ended = good + (counts.get("failed") ?? 0);
  return { share: ended > 0 ? good / ended : null, ended };
}

export function sumTicks(ticks: readonly TickLike[]): TickSums {
  const counts = new Map<string, number>();
  for (const tick of ticks) counts.set(tick.outcome, (counts.get(tick.outcome) ?? 0) + 1);
  const outcomes = [...counts].sort((left, right) => right[1] - left[1]);
  const { share, ended } = successOf(outcomes);
  return { successShare: share, ended, outcomes };
}
