import { describe, expect, it } from "vitest";
import { barOf, type GanttStep, TimeScale } from "./gantt";

const at = (seconds: number) => new Date(seconds * 1000).toISOString();
const step = (state: string, created: number, started?: number, finished?: number): GanttStep => ({
  state,
  created_at: at(created),
  started_at: started === undefined ? null : at(started),
  finished_at: finished === undefined ? null : at(finished),
});

describe("bars", () => {
  it("tell waiting for others, being held and running apart", () => {
    expect(barOf(step("succeeded", 0, 20, 30), [step("succeeded", 0, 0, 8), step("failed", 0, 0, 12)], 0)).toEqual({ from: 0, readyAt: 12_000, startedAt: 20_000, to: 30_000 });
  });
  it("go on until now", () => {
    expect(barOf(step("running", 0, 5), [], 9_000)).toEqual({ from: 0, readyAt: 0, startedAt: 5_000, to: 9_000 });
    expect(barOf(step("waiting", 0), [step("running", 0, 1)], 9_000)).toEqual({ from: 0, readyAt: 9_000, startedAt: null, to: 9_000 });
    expect(barOf(step("held", 0), [step("succeeded", 0, 1, 4)], 9_000)).toEqual({ from: 0, readyAt: 4_000, startedAt: null, to: 9_000 });
  });
});

describe("the scale", () => {
  it("is even where work goes on", () => {
    const scale = new TimeScale(0, 100, [[0, 50], [40, 100]]);
    expect(scale.parts).toHaveLength(1);
    expect(scale.place(25)).toBeCloseTo(0.25);
  });
  it("folds a long idle time and keeps a short one", () => {
    const scale = new TimeScale(0, 10_100, [[0, 50], [60, 100], [10_050, 10_100]]);
    expect(scale.parts.map((part) => part.isFolded)).toEqual([false, false, false, true, false]);
    const folded = scale.parts[3];
    expect((folded?.right ?? 0) - (folded?.left ?? 0)).toBeCloseTo(0.05);
    expect(scale.place(10_100)).toBeCloseTo(1);
    for (let t = 0; t < 10_100; t += 37) expect(scale.place(t)).toBeLessThanOrEqual(scale.place(t + 37));
  });
  it("marks round instants where it is not folded", () => {
    const scale = new TimeScale(0, 3_600_000, [[0, 10_000], [3_590_000, 3_600_000]]);
    const ticks = scale.ticks(5);
    expect(ticks).toEqual([0, 5_000, 10_000, 3_590_000, 3_595_000, 3_600_000]);
  });
  it("bears nothing at all", () => {
    expect(new TimeScale(5, 5, []).place(5)).toBe(0);
    expect(new TimeScale(0, 10, []).place(5)).toBeCloseTo(0.5);
  });
});
