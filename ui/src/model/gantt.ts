import { millis } from "./times";

export interface GanttStep {
  created_at: string;
  started_at?: string | null;
  finished_at?: string | null;
  state: string;
}

/** The phases of a step: it waits for others, then it may start but is held, then it runs. */
export interface Bar {
  from: number;
  /** When everything before it had ended. */
  readyAt: number;
  /** Null: it never started. */
  startedAt: number | null;
  to: number;
}

/** `before`: the steps that it waited for. */
export function barOf(step: GanttStep, before: readonly (GanttStep | undefined)[], now: number): Bar {
  const from = millis(step.created_at);
  const end = step.finished_at ? millis(step.finished_at) : now;
  const startedAt = step.started_at ? millis(step.started_at) : null;
  const limit = startedAt ?? end;
  let readyAt = from;
  for (const one of before) {
    if (!one?.finished_at) readyAt = Math.max(readyAt, step.state === "waiting" ? end : from);
    else readyAt = Math.max(readyAt, millis(one.finished_at));
  }
  return { from, readyAt: Math.max(from, Math.min(readyAt, limit)), startedAt, to: Math.max(end, from) };
}

export interface Part {
  from: number;
  to: number;
  /** Where it begins and ends in the picture, from 0 to 1. */
  left: number;
  right: number;
  isFolded: boolean;
}

/** An idle time that takes more than this share of the work is folded, to this width. */
const FOLD_ABOVE = 0.25;
const FOLDED_SHARE = 0.05;

/** A scale on which long times without work take little room. */
export class TimeScale {
  readonly parts: Part[];

  constructor(
    readonly from: number,
    readonly to: number,
    busy: readonly (readonly [number, number])[],
  ) {
    const merged = merge(busy, from, to);
    const worked = merged.reduce((sum, [begin, end]) => sum + end - begin, 0);
    const fold = Math.max(worked * FOLD_ABOVE, 1);
    const cuts: { from: number; to: number; isFolded: boolean }[] = [];
    let at = from;
    const idle = (until: number) => {
      if (until <= at) return;
      cuts.push({ from: at, to: until, isFolded: worked > 0 && until - at > fold });
      at = until;
    };
    for (const [begin, end] of merged) {
      idle(begin);
      cuts.push({ from: at, to: end, isFolded: false });
      at = end;
    }
    idle(to);
    const open = cuts.reduce((sum, cut) => sum + (cut.isFolded ? 0 : cut.to - cut.from), 0);
    const folds = cuts.filter((cut) => cut.isFolded).length;
    const room = Math.max(0.2, 1 - folds * FOLDED_SHARE);
    let left = 0;
    this.parts = cuts.map((cut) => {
      const share = cut.isFolded ? (1 - room) / folds : open > 0 ? ((cut.to - cut.from) / open) * room : 0;
      const part = { ...cut, left, right: left + share };
      left += share;
      return part;
    });
  }

  /** Where an instant is, from 0 to 1. */
  place(at: number): number {
    const part = this.parts.find((one) => at <= one.to) ?? this.parts.at(-1);
    if (!part) return 0;
    const share = part.to > part.from ? (at - part.from) / (part.to - part.from) : 0;
    return part.left + Math.max(0, Math.min(1, share)) * (part.right - part.left);
  }

  /** Round instants to mark, in parts that are not folded. */
  ticks(most: number): number[] {
    const open = this.parts.filter((part) => !part.isFolded);
    const length = open.reduce((sum, part) => sum + part.to - part.from, 0);
    const step = STEPS.find((one) => length / one <= most) ?? Math.ceil(length / most / DAY) * DAY;
    return open.flatMap((part) => {
      const found: number[] = [];
      for (let at = Math.ceil(part.from / step) * step; at <= part.to; at += step) found.push(at);
      return found;
    });
  }
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY];

function merge(intervals: readonly (readonly [number, number])[], from: number, to: number): [number, number][] {
  const merged: [number, number][] = [];
  for (const [begin, end] of [...intervals].sort((a, b) => a[0] - b[0])) {
    const [cutBegin, cutEnd] = [Math.max(begin, from), Math.min(end, to)];
    if (cutEnd < cutBegin) continue;
    const last = merged.at(-1);
    if (last && cutBegin <= last[1]) last[1] = Math.max(last[1], cutEnd);
    else merged.push([cutBegin, cutEnd]);
  }
  return merged;
}
