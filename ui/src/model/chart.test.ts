import { expect, test } from "vitest";
import { greatest, isMeasured, niceScale, pointAt, timeMarks, timeScale, totals } from "./chart";

test("a scale begins at zero, is round, and reaches the greatest value", () => {
  expect(niceScale(0)).toEqual([0, 1]);
  expect(niceScale(9)).toEqual([0, 5, 10]);
  expect(niceScale(2, true)).toEqual([0, 1, 2]);
  expect(niceScale(1, true)).toEqual([0, 1]);
  for (const most of [0.003, 0.2, 1, 3, 7.5, 12, 99, 100, 101, 4_321, 1e7]) {
    const marks = niceScale(most);
    expect(marks.at(-1)).toBeGreaterThanOrEqual(most);
    expect(marks.length).toBeGreaterThanOrEqual(2);
    expect(marks.length).toBeLessThanOrEqual(5);
  }
});

test("time marks are on whole parts of an hour and within the range", () => {
  const from = Date.parse("2026-11-18T08:13:00Z");
  const to = Date.parse("2026-11-18T11:13:00Z");
  expect(timeMarks(from, to, 6).map((at) => new Date(at).toISOString().slice(11, 16))).toEqual(["08:30", "09:00", "09:30", "10:00", "10:30", "11:00"]);
  expect(timeMarks(from, from + 7 * 86_400_000, 7).length).toBeLessThanOrEqual(8);
});

test("what was not measured counts for nothing and is no zero", () => {
  const lines = [
    { name: "a", values: [null, 1, 2] },
    { name: "b", values: [null, 3, null] },
  ];
  expect(totals(lines)).toEqual([0, 4, 2]);
  expect(greatest(lines, true)).toBe(4);
  expect(greatest(lines, false)).toBe(3);
  expect(isMeasured(lines)).toBe(true);
  expect(isMeasured([{ name: "a", values: [null, null] }])).toBe(false);
});

test("every place of the width belongs to a point", () => {
  expect([0, 0.24, 0.25, 0.999, 1, -1, 2].map((share) => pointAt(share, 4))).toEqual([0, 0, 1, 3, 3, 0, 3]);
  expect(pointAt(0.5, 0)).toBeNull();
});

test.each([
  [2, [0, 1, 2]],
  [14, [0, 5, 10, 15]],
  [75, [0, 30, 60, 90]],
  [590, [0, 300, 600]],
  [5_000, [0, 1_800, 3_600, 5_400]],
])("%s seconds have marks at whole times", (most, marks) => expect(timeScale(most)).toEqual(marks));
