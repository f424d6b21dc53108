import { describe, expect, it } from "vitest";
import { segmentsOf } from "./timeline";

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
