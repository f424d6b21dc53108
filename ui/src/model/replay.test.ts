import { expect, test } from "vitest";
import { parseRate, replayParts, spread } from "./replay";

test("rates are numbers above zero, and nothing means as fast as possible", () => {
  expect(["5", " 0.5 ", "2,5", "10000"].map(parseRate)).toEqual([5, 0.5, 2.5, 10_000]);
  expect(parseRate("  ")).toBeNull();
  expect(["0", "-1", "10001", "five", "1e3", "1 2"].map(parseRate)).toEqual(Array(6).fill(undefined));
});

test("the first run is due at once, and the last one when the others were", () => {
  expect(spread(1, 5)).toBe("0 ms");
  expect(spread(411, 5)).toBe("1 min 22 s");
});

test("what is created and has not ended is open, and the rest is left", () => {
  const parts = replayParts({ total: 10, started: 6, outcomes: { succeeded: 3, failed: 1, cancelled: 1 } });
  expect(parts).toEqual({ started: 6, succeeded: 3, failed: 1, other: 1, open: 1, left: 4 });
  expect(replayParts({ total: 2, started: 0, outcomes: {} }).left).toBe(2);
});
