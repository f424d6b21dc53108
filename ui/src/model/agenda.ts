/** The arithmetic of the agenda: which time it shows, how its jobs are grouped, and where it gets tight. */

export type Span = "day" | "week";
const HOUR = 3_600_000;

/** Midnight some days after the day of an instant, in UTC or in the zone of the browser. */
export function midnight(at: number, days: number, isUtc: boolean): number {
  const date = new Date(at);
  return isUtc ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + days) : new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime();
}

export interface Range {
  /** Null: from now on. */
  from: number | null;
  hours: number;
}

/** The hours of days that begin at midnight: a day on which clocks change has 23 or 25. */
function hoursOf(from: number, span: Span, isUtc: boolean): number {
  return Math.round((midnight(from, span === "day" ? 1 : 7, isUtc) - from) / HOUR);
}

/** What is asked for. A beginning that has passed means now. */
export function rangeOf(from: string | undefined, span: Span, hours: number | null, now: number, isUtc: boolean): Range {
  const begin = from === undefined ? Number.NaN : Date.parse(from);
  const isAhead = Number.isFinite(begin) && begin > now;
  if (hours !== null) return { from: isAhead ? begin : null, hours };
  if (!isAhead) return { from: null, hours: span === "day" ? 24 : 168 };
  const isDay = midnight(begin, 0, isUtc) === begin;
  return { from: begin, hours: isDay ? hoursOf(begin, span, isUtc) : span === "day" ? 24 : 168 };
}

/** The beginning of the next or previous part: from midnight on. Null is now. */
export function shifted(range: Range, span: Span, by: 1 | -1, now: number, isUtc: boolean): number | null {
  const days = (span === "day" ? 1 : 7) * by;
  const next = midnight(range.from ?? now, days, isUtc);
  // A week ahead of now begins tomorrow at the earliest.
  return next <= now ? null : next;
}

export interface AgendaJob {
  name: string;
  queue: string;
  tags: readonly string[];
  count: number;
}

/** Jobs by queue or by tag, in order of the names. A job with several tags is in several groups. */
export function grouped<Job extends AgendaJob>(jobs: readonly Job[], by: "queue" | "tag"): { name: string | null; jobs: Job[]; ticks: number }[] {
  const groups = new Map<string | null, Job[]>();
  for (const job of jobs) {
    const names: (string | null)[] = by === "queue" ? [job.queue] : job.tags.length > 0 ? [...job.tags] : [null];
    for (const name of names) groups.set(name, [...(groups.get(name) ?? []), job]);
  }
  return [...groups]
    .sort(([one], [other]) => (one === null ? 1 : other === null ? -1 : one < other ? -1 : 1))
    .map(([name, found]) => ({ name, jobs: found, ticks: found.reduce((sum, job) => sum + job.count, 0) }));
}

export interface Bucket {
  at: string;
  fires: number;
  slots: number;
}

/** The bucket with the most of something, the first of several. */
export function greatestOf(buckets: readonly Bucket[], what: "fires" | "slots"): Bucket | null {
  return buckets.reduce<Bucket | null>((most, bucket) => (bucket[what] > (most?.[what] ?? 0) ? bucket : most), null);
}

/** The places of ticks in a strip, as shares of its width. What is not listed one by one fills the rest. */
export function marksOf(fires: readonly string[], count: number, since: number, until: number): { marks: number[]; rest: number | null } {
  const marks = fires.map((at) => (Date.parse(at) - since) / (until - since)).filter((share) => share >= 0 && share <= 1);
  const last = marks.at(-1);
  return { marks, rest: count > fires.length && last !== undefined ? last : null };
}

