import { expect, test } from "vitest";
import { changesBetween, type Definition, threeVersions } from "./versionDiff";

const job = (part: Partial<Definition> = {}): Definition => ({ queue: "mail", priority: 0, schedule: { cron: "0 3 * * *" }, payload: {}, options: null, metadata: {}, tags: [], ...part });

test("changed, new and removed fields are named by their place", () => {
  const before = job({ schedule: { cron: "0 3 * * *", calendar: "bank" }, payload: { to: { name: "ann" }, dry: true } });
  const after = job({ schedule: { cron: ["0 3 * * *", "0 4 * * *"] }, payload: { to: { name: "bob" }, dry: true }, options: { retries: 2 }, tags: ["night"] });
  expect(changesBetween(before, after)).toEqual([
    { path: "cron", before: "0 3 * * *", after: "0 3 * * *\n0 4 * * *" },
    { path: "calendar", before: "bank", after: null },
    { path: "payload.to.name", before: "ann", after: "bob" },
    { path: "tags", before: null, after: "night" },
    { path: "retries", before: null, after: "2" },
  ]);
  expect(changesBetween(before, before)).toEqual([]);
});

test("three versions show what either side has changed", () => {
  const found = threeVersions(job(), job({ priority: 5 }), job({ queue: "bulk" }));
  expect(found).toEqual([
    { path: "queue", base: "mail", theirs: "mail", mine: "bulk" },
    { path: "priority", base: "0", theirs: "5", mine: "0" },
  ]);
});

test("a payload of any size makes a bounded list", () => {
  const payload = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, { deep: index }]));
  expect(changesBetween(job(), job({ payload })).length).toBeLessThan(5_100);
});
