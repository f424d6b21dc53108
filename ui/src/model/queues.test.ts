import { expect, test } from "vitest";
import { conditionOf, growth, type QueueCounts, shares, timeToEmpty } from "./queues";

const queue = (change: Partial<Record<"ready" | "running" | "held" | "workers" | "slots", number>> & { paused?: object; max_running?: number } = {}): QueueCounts => ({
  ready: { count: change.ready ?? 0 },
  running: { count: change.running ?? 0 },
  held: { count: change.held ?? 0 },
  workers: change.workers ?? 1,
  slots: change.slots ?? 4,
  paused: change.paused ?? null,
  max_running: change.max_running ?? null,
});

test("the first obstacle is the condition of a queue", () => {
  expect(conditionOf(queue({ ready: 1, workers: 0, slots: 0, paused: {} }))).toBe("paused");
  expect(conditionOf(queue({ ready: 1, workers: 0, slots: 0 }))).toBe("unserved");
  expect(conditionOf(queue({ ready: 1, running: 2, max_running: 2 }))).toBe("limited");
  expect(conditionOf(queue({ ready: 1, running: 4 }))).toBe("full");
  expect(conditionOf(queue({ ready: 1, running: 3 }))).toBe("running");
  expect(conditionOf(queue({ ready: 1 }))).toBe("waiting");
  expect(conditionOf(queue({ held: 1 }))).toBe("held");
  expect(conditionOf(queue({ workers: 0, slots: 0 }))).toBe("idle");
});

test("the time to empty follows the pace of the last minute", () => {
  expect(timeToEmpty(queue({ ready: 30, held: 30 }), 20)).toEqual({ kind: "takes", seconds: 180, perMinute: 20 });
  expect(timeToEmpty(queue({ ready: 3 }), 0)).toEqual({ kind: "stuck" });
  expect(timeToEmpty(queue({ ready: 3, paused: {} }), 5)).toEqual({ kind: "paused" });
  expect(timeToEmpty(queue({ running: 3, paused: {} }), 5)).toEqual({ kind: "empty" });
});

test("growth needs enough measured points", () => {
  expect(growth([null, 3, 4, null, 9], 2)).toBe(6);
  expect(growth([null, 3, 4], 2)).toBeNull();
  expect(growth([9, 2], 1)).toBe(-7);
});

test("shares are parts of all that runs", () => {
  expect(shares([{ running: 3 }, { running: 1 }])).toEqual([0.75, 0.25]);
  expect(shares([{ running: 0 }, { running: 0 }])).toEqual([0, 0]);
});
