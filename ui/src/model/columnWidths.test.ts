import { expect, test } from "vitest";
import { leastOf, leastWidth } from "./columnWidths";

test.each([
  ["7rem", 112],
  ["minmax(12rem, 1fr)", 192],
  ["minmax(0, 1fr)", 0],
  ["40px", 40],
  ["1fr", 0],
  ["0", 0],
])("the track %s needs at least %d pixels", (track, least) => expect(leastOf(track)).toBe(least));

test("a table needs its tracks, a gap between each two, and its edges", () => {
  const columns = [{ width: "10rem" }, { width: "minmax(5rem, 1fr)" }];
  expect(leastWidth(columns, false)).toBe(240 + 16 + 32);
  expect(leastWidth(columns, true)).toBe(240 + 36 + 32 + 32);
});
