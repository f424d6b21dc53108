import { expect, test } from "vitest";
import { nearnessOf, runningP95, topOf } from "./durations";

test("runs are near the next one from two thirds of the period on", () => {
  expect(nearnessOf(10, 60)).toBe("far");
  expect(nearnessOf(40, 60)).toBe("near");
  expect(nearnessOf(60, 60)).toBe("meets");
  expect(nearnessOf(null, 60)).toBeNull();
  expect(nearnessOf(60, null)).toBeNull();
});

test("the running 95th percentile looks back over its window only", () => {
  expect(runningP95([1, 2, 3], 20)).toEqual([1, 2, 3]);
  expect(runningP95([9, 1, 1, 1], 2)).toEqual([9, 9, 1, 1]);
  const many = Array.from({ length: 100 }, (_, index) => index + 1);
  expect(runningP95(many, 100).at(-1)).toBe(95);
});

test("a period far above all durations does not flatten the picture", () => {
  expect(topOf([2, 5], 86_400)).toBeCloseTo(5.6);
  expect(topOf([2, 5], 10)).toBeCloseTo(11.2);
  expect(topOf([], null)).toBeGreaterThan(0);
});
