import type { Tone } from "./states";
import { millis } from "./times";

export interface TimelineRun {
  state: string;
  created_at: string;
  scheduled_at: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface TimelineAttempt {
  attempt: number;
  outcome: string;
  started_at: string;
  finished_at: string | null;
  /** When the worker of a lost attempt reported its outcome after all. */
  refused_at?: string | null;
}

/** An instant in the life of a run. */
export interface Moment {
  kind: "created" | "due" | "started" | "failed" | "lost" | "refused" | "ended" | "next";
  at: number;
  tone: Tone;
  attempt?: number;
  outcome?: string;
}

export interface Segment {
  kind: "waited" | "held" | "attempt" | "backoff";
  seconds: number;
  weight: number;
  tone: Tone;
  attempt?: number;
  outcome?: string;
  isFolded: boolean;
  /** It goes on. */
  isOpen: boolean;
}

const OUTCOME_TONES: Record<string, Tone> = { succeeded: "succeeded", running: "running", error: "failed", timeout: "failed", lost: "failed", cancelled: "cancelled" };
/** A wait may take as much room as all attempts together, and not more. */
const WAIT_SHARE = 1;

/** The phases of a run in order, with the room that each takes in a picture. */
export function segmentsOf(run: TimelineRun, attempts: readonly TimelineAttempt[], now: number): Segment[] {
  const created = millis(run.created_at);
  const end = run.finished_at ? millis(run.finished_at) : now;
  const first = attempts[0] ? millis(attempts[0].started_at) : end;
  const segments: Segment[] = [];
  const add = (kind: Segment["kind"], from: number, to: number, tone: Tone, more: Partial<Segment> = {}) => {
    if (to - from < 1 && kind !== "attempt") return;
    segments.push({ kind, seconds: Math.max(0, to - from) / 1000, weight: 1, tone, isFolded: false, isOpen: false, ...more });
  };
  // A later due time is that of the next attempt, not of the first.
  const due = attempts.length > 0 ? Math.min(millis(run.scheduled_at), first) : Math.min(Math.max(millis(run.scheduled_at), created), end);
  const isWaiting = attempts.length === 0 && !run.finished_at;
  add("waited", created, Math.max(created, due), "scheduled", { isOpen: isWaiting && due >= end });
  add("held", Math.max(created, due), first, "held", { isOpen: isWaiting });
  attempts.forEach((attempt, index) => {
    const from = millis(attempt.started_at);
    const next = attempts[index + 1];
    const to = attempt.finished_at ? millis(attempt.finished_at) : next ? millis(next.started_at) : end;
    const tone = OUTCOME_TONES[attempt.outcome] ?? "waiting";
    add("attempt", from, to, tone, { attempt: attempt.attempt, outcome: attempt.outcome, isOpen: attempt.outcome === "running" });
    if (next) add("backoff", to, millis(next.started_at), "waiting");
    else if (!run.finished_at && attempt.finished_at) add("backoff", to, end, "waiting", { isOpen: true });
  });
  return weighed(segments);
}

function weighed(segments: Segment[]): Segment[] {
  const worked = segments.filter((segment) => segment.kind === "attempt").reduce((sum, segment) => sum + segment.seconds, 0);
  const most = Math.max(worked * WAIT_SHARE, 0.001);
  const all = segments.map((segment) => {
    const isFolded = worked > 0 && segment.kind !== "attempt" && segment.seconds > most * 1.5;
    return { ...segment, isFolded, weight: isFolded ? most : segment.seconds };
  });
  const sum = all.reduce((total, segment) => total + segment.weight, 0) || 1;
  return all.map((segment) => ({ ...segment, weight: Math.max(0.02, segment.weight / sum) }));
}

/** A due time this close to the creation says nothing of its own. */
const AT_ONCE = 1_000;
/** Of the attempts in between, only so many latest ones are told. */
const TOLD = 3;

/** What happened when, in order, and how many attempts in the middle are left out. */
export function momentsOf(run: TimelineRun, attempts: readonly TimelineAttempt[], now: number): { moments: Moment[]; left: number } {
  const created = millis(run.created_at);
  const due = millis(run.scheduled_at);
  const moments: Moment[] = [{ kind: "created", at: created, tone: "waiting" }];
  const first = attempts[0];
  // Once it is tried again, the due time is that of the next attempt.
  if (attempts.length <= 1 && run.state !== "scheduled" && Math.abs(due - created) >= AT_ONCE && (!first || due <= millis(first.started_at))) moments.push({ kind: "due", at: due, tone: "scheduled" });
  if (first) moments.push({ kind: "started", at: millis(first.started_at), tone: "running" });
  const last = attempts.at(-1);
  const between = attempts.filter((attempt) => attempt.finished_at && !(run.finished_at && attempt === last));
  for (const attempt of between.slice(-TOLD))
    moments.push({ kind: attempt.outcome === "lost" ? "lost" : "failed", at: millis(attempt.finished_at ?? now), tone: OUTCOME_TONES[attempt.outcome] ?? "waiting", attempt: attempt.attempt, outcome: attempt.outcome });
  for (const attempt of attempts) if (attempt.refused_at) moments.push({ kind: "refused", at: millis(attempt.refused_at), tone: "held", attempt: attempt.attempt });
  if (run.finished_at) moments.push({ kind: "ended", at: millis(run.finished_at), tone: run.state as Tone });
  else if (run.state === "scheduled") moments.push({ kind: attempts.length > 0 ? "next" : "due", at: due, tone: "scheduled" });
  return { moments: moments.sort((one, other) => one.at - other.at), left: Math.max(0, between.length - TOLD) };
}
