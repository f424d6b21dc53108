import { describe, expect, it } from "vitest";
import { momentsOf, segmentsOf } from "./timeline";

const at = (seconds: number) => new Date(Date.UTC(2026, 10, 18) + seconds * 1000).toISOString();
const NOW = Date.parse(at(100));
const run = (change: object) => ({ state: "succeeded", created_at: at(0), scheduled_at: at(0), started_at: at(10), finished_at: at(20), ...change });

describe("segmentsOf", () => {
  it("tells waiting, attempts and the pauses between them apart", () => {
    const segments = segmentsOf(run({ scheduled_at: at(5), finished_at: at(30) }), [
      { attempt: 1, outcome: "error", started_at: at(10), finished_at: at(12) },
      { attempt: 2, outcome: "succeeded", started_at: at(20), finished_at: at(30) },
    ], NOW);
    expect(segments.map((one) => [one.kind, one.seconds, one.tone])).toEqual([
      ["waited", 5, "scheduled"], ["held", 5, "held"], ["attempt", 2, "failed"], ["backoff", 8, "waiting"], ["attempt", 10, "succeeded"],
    ]);
  });
  it("shortens a wait that is much longer than the work", () => {
    const segments = segmentsOf(run({ created_at: at(-86_400) }), [{ attempt: 1, outcome: "succeeded", started_at: at(10), finished_at: at(20) }], NOW);
    expect(segments.find((one) => one.kind === "waited")?.isFolded).toBe(true);
    expect(segments.find((one) => one.kind === "attempt")?.weight).toBeGreaterThan(0.25);
  });
  it("leaves the last phase open while the run has not ended", () => {
    expect(segmentsOf(run({ state: "held", started_at: null, finished_at: null }), [], NOW).map((one) => [one.kind, one.isOpen])).toEqual([["held", true]]);
    expect(segmentsOf(run({ state: "scheduled", scheduled_at: at(500), started_at: null, finished_at: null }), [], NOW).map((one) => [one.kind, one.isOpen])).toEqual([["waited", true]]);
    expect(segmentsOf(run({ state: "running", finished_at: null }), [{ attempt: 1, outcome: "running", started_at: at(10), finished_at: null }], NOW).at(-1)?.isOpen).toBe(true);
    expect(segmentsOf(run({ state: "scheduled", scheduled_at: at(500), finished_at: null }), [{ attempt: 1, outcome: "error", started_at: at(10), finished_at: at(11) }], NOW).at(-1)?.kind).toBe("backoff");
  });
  it("is empty for nothing, and never negative with clocks that differ", () => {
    expect(segmentsOf(run({ finished_at: at(0), started_at: null }), [], NOW)).toEqual([]);
    for (const one of segmentsOf(run({ finished_at: at(-5) }), [{ attempt: 1, outcome: "error", started_at: at(3), finished_at: at(1) }], NOW)) expect(one.seconds).toBeGreaterThanOrEqual(0);
  });
});

describe("momentsOf", () => {
  const kinds = (...given: Parameters<typeof momentsOf>) => momentsOf(...given).moments.map((one) => one.kind);
  it("tells the life of a run in order", () => {
    const attempts = [
      { attempt: 1, outcome: "error", started_at: at(10), finished_at: at(12) },
      { attempt: 2, outcome: "succeeded", started_at: at(20), finished_at: at(30) },
    ];
    expect(kinds(run({ finished_at: at(30) }), attempts, NOW)).toEqual(["created", "started", "failed", "ended"]);
    expect(kinds(run({ scheduled_at: at(5) }), attempts.slice(1), NOW)).toEqual(["created", "due", "started", "ended"]);
  });
  it("shows a lost attempt, and its late outcome where it came", () => {
    const attempts = [
      { attempt: 1, outcome: "lost", started_at: at(10), finished_at: at(40), refused_at: at(55) },
      { attempt: 2, outcome: "running", started_at: at(41), finished_at: null },
    ];
    expect(kinds(run({ state: "running", finished_at: null }), attempts, NOW)).toEqual(["created", "started", "lost", "refused"]);
  });
  it("says when the next attempt is due, and leaves out attempts in the middle", () => {
    const attempts = Array.from({ length: 9 }, (_, index) => ({ attempt: index + 1, outcome: "error", started_at: at(10 + index), finished_at: at(10.5 + index) }));
    const found = momentsOf(run({ state: "scheduled", scheduled_at: at(500), finished_at: null }), attempts, NOW);
    expect(found.moments.map((one) => one.attempt ?? one.kind)).toEqual(["created", "started", 7, 8, 9, "next"]);
    expect(found.left).toBe(6);
  });
  it("says the due time of a run that was made for later, and not that of one for now", () => {
    const waiting = { state: "scheduled", started_at: null, finished_at: null };
    expect(kinds(run({ ...waiting, scheduled_at: at(500) }), [], NOW)).toEqual(["created", "due"]);
    expect(kinds(run({ state: "ready", started_at: null, finished_at: null, scheduled_at: at(0.2) }), [], NOW)).toEqual(["created"]);
  });
});
