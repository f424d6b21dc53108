import { duration } from "./times";

/** A rate as somebody writes it: null is as fast as possible, undefined is no rate. */
export function parseRate(words: string): number | null | undefined {
  const trimmed = words.trim().replace(",", ".");
  if (trimmed === "") return null;
  if (!/^\d{1,5}(\.\d{1,3})?$/.test(trimmed)) return undefined;
  const rate = Number(trimmed);
  return rate > 0 && rate <= 10_000 ? rate : undefined;
}

/** How long that many runs take to become due, such as "1 min 22 s". */
export function spread(count: number, rate: number): string {
  return duration(Math.max(0, count - 1) / rate);
}

export interface ReplayParts {
  started: number;
  succeeded: number;
  failed: number;
  /** Cancelled or skipped. */
  other: number;
  /** Created, and not ended yet. */
  open: number;
  /** Not created yet. */
  left: number;
}

/** How far a replay is, from the endings of its runs. */
export function replayParts({ total, started, outcomes }: { total: number; started: number; outcomes: Readonly<Record<string, number>> }): ReplayParts {
  const succeeded = outcomes.succeeded ?? 0;
  const failed = outcomes.failed ?? 0;
  const other = (outcomes.cancelled ?? 0) + (outcomes.skipped ?? 0);
  return { started, succeeded, failed, other, open: Math.max(0, started - succeeded - failed - other), left: Math.max(0, total - started) };
}
