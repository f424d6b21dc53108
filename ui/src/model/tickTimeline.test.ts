import { describe, expect, it } from "vitest";
import { barAt, barsOf, closer, endAround, rangeOf, type StripCell } from "./tickTimeline";

const HOUR = 3_600_000;
const since = Date.parse("2026-03-01T00:00:00Z");
const until = since + 24 * HOUR;
const at = (hour: number) => new Date(since + hour * HOUR).toISOString();
const cell = (hour: number, outcome: string, count = 1, more: Partial<StripCell> = {}): StripCell => ({
  first: at(hour),
  last: at(hour),
  until_at: null,
  outcome,
  count,
  run_id: null,
  blocked_by: null,
  ...more,
});

describe("bars of a strip of ticks", () => {
  it("puts outcomes of one cell into one bar, the worst first", () => {
    const [bar, ...rest] = barsOf([cell(3, "succeeded", 5), cell(3.5, "failed", 2, { last: at(3.9) })], since, until, HOUR);
    expect(rest).toEqual([]);
    expect(bar?.parts).toEqual([
      { outcome: "failed", count: 2 },
      { outcome: "succeeded", count: 5 },
    ]);
    expect([bar?.count, bar?.left, bar?.right]).toEqual([7, 3 / 24, 4 / 24]);
    expect([bar?.from, bar?.to]).toEqual([Date.parse(at(3)), Date.parse(at(3.9))]);
  });

  it("draws a range as one bar from its begin to its end, cut off where the strip begins", () => {
    const [bar] = barsOf([cell(-6, "missed", 1, { until_at: at(6) })], since, until, HOUR);
    expect([bar?.left, bar?.right, bar?.isRange]).toEqual([0, 0.25, true]);
    expect(bar?.from).toBe(Date.parse(at(-6)));
  });

  it("keeps a range apart from ticks of the same cell, and gives it at least the width of a cell", () => {
    const bars = barsOf([cell(3, "succeeded"), cell(3, "paused", 1, { until_at: at(3) })], since, until, HOUR);
    expect(bars.map((bar) => [bar.isRange, Math.round((bar.right - bar.left) * 24)])).toEqual([
      [true, 1],
      [false, 1],
    ]);
  });

  it("finds the bar below the pointer, the nearest one beside it, and none further away", () => {
    const bars = barsOf([cell(1, "missed", 1, { until_at: at(12) }), cell(6, "succeeded"), cell(20, "failed")], since, until, HOUR);
    expect(barAt(bars, 3 / 24, 0.02)).toBe(0);
    expect(barAt(bars, 6.5 / 24, 0.02)).toBe(1);
    expect(barAt(bars, 19.8 / 24, 0.02)).toBe(2);
    expect(barAt(bars, 17 / 24, 0.02)).toBe(-1);
  });

  it("turns a drag in either direction into a range inside the strip", () => {
    expect(rangeOf(0.5, 0.25, since, until)).toEqual({ from: since + 6 * HOUR, to: since + 12 * HOUR });
    expect(rangeOf(-1, 2, since, until)).toEqual({ from: since, to: until });
  });
});

describe("zoom", () => {
  it("goes from a year to an hour and no closer", () => {
    expect(closer("year")).toBe("month");
    expect(closer("day")).toBe("hour");
    expect(closer("hour")).toBeNull();
  });

  it("never ends after now", () => {
    expect(endAround(until - HOUR, "day", until)).toBe(until);
    expect(endAround(since, "hour", until)).toBe(since + HOUR / 2);
  });
});
