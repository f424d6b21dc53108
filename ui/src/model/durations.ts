/** How long runs take, compared with the time between ticks. */

export interface Took {
  run_id: string;
  tick_at: string;
  state: string;
  seconds: number;
}

/** How near runs are to meeting the next one. */
export type Nearness = "far" | "near" | "meets";

/** From two thirds of the period on, a slow day is enough for runs to meet. */
const NEAR = 2 / 3;

export function nearnessOf(p95: number | null, period: number | null): Nearness | null {
  if (p95 === null || period === null) return null;
  return p95 >= period ? "meets" : p95 >= period * NEAR ? "near" : "far";
}

/** The 95th percentile of the runs up to each one, of so many at most, in the given order. */
export function runningP95(seconds: readonly number[], window: number): number[] {
  return seconds.map((_, index) => {
    const latest = seconds.slice(Math.max(0, index + 1 - window), index + 1).sort((one, other) => one - other);
    return latest[Math.ceil(latest.length * 0.95) - 1] ?? 0;
  });
}

/** The top of the picture: the period is in it only if runs come near it. */
export function topOf(seconds: readonly number[], period: number | null): number {
  const longest = Math.max(0.001, ...seconds);
  return period !== null && period <= longest * 4 ? Math.max(longest, period) * 1.12 : longest * 1.12;
}
