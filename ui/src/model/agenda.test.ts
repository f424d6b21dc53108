import { describe, expect, it } from "vitest";
import { greatestOf, grouped, marksOf, midnight, rangeOf, shifted } from "./agenda";

const NOW = Date.parse("2026-11-19T14:20:00Z");
const at = (text: string) => Date.parse(text);

describe("the time of an agenda", () => {
  it("is from now on, unless something ahead is asked for", () => {
    for (const from of [undefined, "nonsense", "2026-11-18T00:00:00Z"]) expect(rangeOf(from, "day", null, NOW, true)).toEqual({ from: null, hours: 24 });
    expect(rangeOf(undefined, "week", null, NOW, true)).toEqual({ from: null, hours: 168 });
    expect(rangeOf("2026-11-20T00:00:00Z", "day", null, NOW, true)).toEqual({ from: at("2026-11-20T00:00:00Z"), hours: 24 });
    expect(rangeOf("2026-11-20T03:00:00Z", "day", 2, NOW, true)).toEqual({ from: at("2026-11-20T03:00:00Z"), hours: 2 });
  });
  it("moves by days from midnight to midnight, and back to now", () => {
    const now = { from: null, hours: 24 };
    const tomorrow = shifted(now, "day", 1, NOW, true);
    expect(tomorrow).toBe(at("2026-11-20T00:00:00Z"));
    expect(shifted({ from: tomorrow, hours: 24 }, "day", 1, NOW, true)).toBe(at("2026-11-21T00:00:00Z"));
    expect(shifted({ from: tomorrow, hours: 24 }, "day", -1, NOW, true)).toBeNull();
    expect(shifted(now, "week", 1, NOW, true)).toBe(at("2026-11-26T00:00:00Z"));
  });
  it("knows the days on which clocks change", () => {
    const begin = midnight(at("2026-10-25T12:00:00Z"), 0, false);
    const length = (midnight(begin, 1, false) - begin) / 3_600_000;
    expect(rangeOf(new Date(begin).toISOString(), "day", null, at("2026-10-01T00:00:00Z"), false).hours).toBe(length);
  });
});

describe("the jobs of an agenda", () => {
  const jobs = [
    { name: "a", queue: "mail", tags: ["x", "y"], count: 2 },
    { name: "b", queue: "default", tags: [], count: 3 },
    { name: "c", queue: "mail", tags: ["x"], count: 5 },
  ];
  const told = (by: "queue" | "tag") => grouped(jobs, by).map((group) => `${group.name}: ${group.jobs.map((job) => job.name).join("")} ${group.ticks}`);
  it("are grouped by queue or by tag", () => {
    expect(told("queue")).toEqual(["default: b 3", "mail: ac 7"]);
    expect(told("tag")).toEqual(["x: ac 7", "y: a 2", "null: b 3"]);
  });
  it("have their ticks at shares of the time", () => {
    const [since, until] = [at("2026-11-19T00:00:00Z"), at("2026-11-20T00:00:00Z")];
    expect(marksOf(["2026-11-19T06:00:00Z", "2026-11-19T12:00:00Z"], 2, since, until)).toEqual({ marks: [0.25, 0.5], rest: null });
    expect(marksOf(["2026-11-19T06:00:00Z"], 9, since, until)).toEqual({ marks: [0.25], rest: 0.25 });
    expect(marksOf([], 0, since, until)).toEqual({ marks: [], rest: null });
  });
  it("crowd somewhere first", () => {
    const buckets = [
      { at: "1", fires: 0, slots: 4 },
      { at: "2", fires: 3, slots: 2 },
      { at: "3", fires: 3, slots: 4 },
    ];
    expect([greatestOf(buckets, "fires")?.at, greatestOf(buckets, "slots")?.at, greatestOf([], "slots")]).toEqual(["2", "1", null]);
  });
});
