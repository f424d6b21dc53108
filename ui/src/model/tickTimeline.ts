import { worstFirst } from "./ticks";
import { millis } from "./times";

/** Ticks of one outcome that are next to each other, or a row that sums up ticks. */
export interface StripCell {
  first: string;
  last: string;
  until_at: string | null;
  outcome: string;
  count: number;
  run_id: string | null;
  blocked_by: string | null;
}

/** A bar of the picture: the ticks of one cell, or a range such as a downtime. */
export interface TickBar {
  /** Shares of the width. */
  left: number;
  right: number;
  from: number;
  /** The last tick in it, or the end of the range. */
  to: number;
  isRange: boolean;
  count: number;
  /** The worst one first. */
  parts: { outcome: string; count: number }[];
}

export const SPANS = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000, month: 30 * 86_400_000, year: 365 * 86_400_000 } as const;
export type Span = keyof typeof SPANS;
export const SPAN_NAMES = Object.keys(SPANS) as Span[];

export function isSpan(name: string | undefined): name is Span {
  return name !== undefined && name in SPANS;
}

/** The next shorter span, for a closer look. */
export function closer(span: Span): Span | null {
  return SPAN_NAMES[SPAN_NAMES.indexOf(span) - 1] ?? null;
}

/** A span that shows an instant in its middle, and nothing that is still to come. */
export function endAround(at: number, span: Span, now: number): number {
  return Math.min(now, at + SPANS[span] / 2);
}

/** The bars of a strip from left to right. */
export function barsOf(cells: readonly StripCell[], since: number, until: number, cellMillis: number): TickBar[] {
  const length = until - since;
  const bars = new Map<string, { cells: StripCell[]; slot: number; isRange: boolean }>();
  for (const cell of cells) {
    const slot = Math.floor((Math.max(since, millis(cell.first)) - since) / cellMillis);
    const isRange = cell.until_at !== null;
    const key = `${slot} ${isRange}`;
    const found = bars.get(key) ?? { cells: [], slot, isRange };
    found.cells.push(cell);
    bars.set(key, found);
  }
  return [...bars.values()]
    .map(({ cells: inside, slot, isRange }) => {
      const from = Math.min(...inside.map((cell) => millis(cell.first)));
      const to = Math.max(...inside.map((cell) => millis(cell.until_at ?? cell.last)));
      const counts = new Map<string, number>();
      for (const cell of inside) counts.set(cell.outcome, (counts.get(cell.outcome) ?? 0) + cell.count);
      const parts = worstFirst([...counts.keys()]).map((outcome) => ({ outcome, count: counts.get(outcome) ?? 0 }));
      const begin = isRange ? Math.max(since, from) : since + slot * cellMillis;
      const end = isRange ? Math.max(Math.min(until, to), begin + cellMillis) : begin + cellMillis;
      return {
        left: (begin - since) / length,
        right: Math.min(1, (end - since) / length),
        from,
        to,
        isRange,
        count: parts.reduce((sum, part) => sum + part.count, 0),
        parts,
      };
    })
    .sort((one, other) => one.left - other.left || Number(other.isRange) - Number(one.isRange));
}

/** The bar below a place, given as a share of the width, or one that is at most `near` away; -1 without any. */
export function barAt(bars: readonly TickBar[], share: number, near: number): number {
  let best = -1;
  let distance = near;
  bars.forEach((bar, index) => {
    const away = share < bar.left ? bar.left - share : share > bar.right ? share - bar.right : 0;
    if (away < distance || (away === 0 && !bar.isRange)) [best, distance] = [index, away];
  });
  return best;
}

/** The part of a range that dragging over the strip has chosen, from the first to the last moment. */
export function rangeOf(one: number, other: number, since: number, until: number): { from: number; to: number } {
  const at = (share: number) => Math.round(since + Math.max(0, Math.min(1, share)) * (until - since));
  return { from: at(Math.min(one, other)), to: at(Math.max(one, other)) };
}
