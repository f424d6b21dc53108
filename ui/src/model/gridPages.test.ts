import { expect, it } from "vitest";
import { cellOf, joinPages, statesIn } from "./gridPages";

it("puts older pages beside newer ones, and steps that are gone below", () => {
  const grid = joinPages([
    { steps: ["a", "b"], runs: [{ states: ["running", "waiting"], seconds: [null, null] }] },
    { steps: ["b", "gone"], runs: [{ states: ["failed", "succeeded"], seconds: [2, 3] }, { states: [null, "skipped"], seconds: [null, null] }] },
  ]);
  expect(grid.steps).toEqual(["a", "b", "gone"]);
  expect(grid.columns).toHaveLength(3);
  expect(cellOf(grid, 0, 0)).toEqual({ state: "running", seconds: null });
  expect(cellOf(grid, 0, 1)).toBeNull();
  expect(cellOf(grid, 1, 1)).toEqual({ state: "failed", seconds: 2 });
  expect(cellOf(grid, 1, 2)).toBeNull();
  expect(cellOf(grid, 2, 2)).toEqual({ state: "skipped", seconds: null });
  expect(cellOf(grid, 9, 9)).toBeNull();
  expect(statesIn(grid, ["succeeded", "failed", "cancelled", "running"])).toEqual(["succeeded", "failed", "running"]);
});
