import { describe, expect, it } from "vitest";
import { isSafeToStop, labelCounts, slotGroups } from "./slots";

const worker = (change: object) => ({ slots: 5, running: 0, left_running: 0, queues: { mail: 2, default: 3 }, runs: [], ...change });
const kinds = (groups: ReturnType<typeof slotGroups>) => groups.map((group) => `${group.queue}: ${group.cells.map((cell) => cell.kind).join(" ")}`);

describe("slots of a worker", () => {
  it("are shown by queue, in order of the names", () => {
    expect(kinds(slotGroups(worker({})))).toEqual(["default: free free free", "mail: free free"]);
  });
  it("hold the runs of their queue", () => {
    expect(kinds(slotGroups(worker({ running: 2, runs: [{ id: "a", queue: "mail" }, { id: "b", queue: "mail" }] })))).toEqual(["default: free free free", "mail: run run"]);
  });
  it("are also taken by what is not known by queue", () => {
    expect(kinds(slotGroups(worker({ running: 3, left_running: 1, runs: [{ id: "a", queue: "default" }] })))).toEqual(["default: run left elsewhere", "mail: elsewhere free"]);
  });
  it("are counted, not drawn, past a bound", () => {
    const [group] = slotGroups(worker({ queues: { mail: 1000 } }), 100);
    expect([group?.cells.length, group?.rest, group?.size]).toEqual([100, 900, 1000]);
  });
});

describe("a worker", () => {
  const drained = { health: "draining", draining_at: "2026-11-19T06:00:00Z", running: 0, left_running: 0 };
  it("is safe to stop once it is drained and empty", () => {
    expect(isSafeToStop(drained)).toBe(true);
    expect(isSafeToStop({ ...drained, health: "late" })).toBe(true);
    for (const change of [{ running: 1 }, { left_running: 1 }, { draining_at: null }, { health: "gone" }]) expect(isSafeToStop({ ...drained, ...change })).toBe(false);
  });
  it("is counted under each of its labels", () => {
    const workers: { labels: Record<string, string> }[] = [{ labels: { rack: "b7", pool: "gpu" } }, { labels: { rack: "b7" } }, { labels: {} }];
    expect(labelCounts(workers)).toEqual([
      { name: "rack", value: "b7", count: 2 },
      { name: "pool", value: "gpu", count: 1 },
    ]);
  });
});
