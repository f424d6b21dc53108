/** What a queue is like, from its counts. */
export interface QueueCounts {
  ready: { count: number };
  running: { count: number };
  held: { count: number };
  workers: number;
  slots: number;
  paused: unknown;
  max_running: number | null;
}

export type QueueCondition = "paused" | "unserved" | "limited" | "full" | "running" | "waiting" | "held" | "idle";

/** The first thing that somebody should know about it. */
export function conditionOf(queue: QueueCounts): QueueCondition {
  const waits = queue.ready.count > 0;
  if (queue.paused) return "paused";
  if (waits && queue.workers === 0) return "unserved";
  if (waits && queue.max_running !== null && queue.running.count >= queue.max_running) return "limited";
  if (waits && queue.running.count >= queue.slots) return "full";
  if (queue.running.count > 0) return "running";
  if (waits) return "waiting";
  return queue.held.count > 0 ? "held" : "idle";
}

export type Emptying = { kind: "empty" | "paused" | "stuck" } | { kind: "takes"; seconds: number; perMinute: number };

/** How long the waiting runs take at the pace of the last minute, if nothing more comes. */
export function timeToEmpty(queue: QueueCounts, endedLastMinute: number): Emptying {
  const waiting = queue.ready.count + queue.held.count;
  if (waiting === 0) return { kind: "empty" };
  if (queue.paused) return { kind: "paused" };
  if (endedLastMinute === 0) return { kind: "stuck" };
  return { kind: "takes", seconds: (waiting / endedLastMinute) * 60, perMinute: endedLastMinute };
}

/** By how much the last values grew over so many points. Null if too few were measured. */
export function growth(values: readonly (number | null)[], points: number): number | null {
  const measured = values.filter((value): value is number => value !== null);
  const last = measured.at(-1);
  const before = measured.at(-1 - points);
  return last === undefined || before === undefined ? null : last - before;
}

/** Shares of the turns that each key has taken, as parts of one. */
export function shares(keys: readonly { running: number }[]): number[] {
  const sum = keys.reduce((before, key) => before + key.running, 0);
  return keys.map((key) => (sum === 0 ? 0 : key.running / sum));
}
