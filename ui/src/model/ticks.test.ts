import { describe, expect, it } from "vitest";
import { isHollow, sumTicks, toneOf, worstOutcome } from "./ticks";

const tick = (outcome: string) => ({ tick_at: "2026-11-18T12:00:00Z", until_at: null, outcome, run_id: null });

describe("ticks", () => {
  it("are hollow where they made no run", () => {
    expect(["overlap", "missed", "superseded", "paused", "excluded"].map((one) => isHollow(tick(one)))).toEqual(Array(5).fill(true));
    expect(["succeeded", "failed", "running", "held"].map((one) => isHollow(tick(one)))).toEqual(Array(4).fill(false));
  });
  it("of an outcome that is not known yet have the quiet tone", () => expect(toneOf(tick("postponed"))).toBe("waiting"));
  it("count towards success only if their run ended well or badly", () => {
    const { successShare, ended, outcomes } = sumTicks(["succeeded", "succeeded", "succeeded", "failed", "overlap", "running"].map(tick));
    expect(successShare).toBe(0.75);
    expect(ended).toBe(4);
    expect(outcomes[0]).toEqual(["succeeded", 3]);
    expect(sumTicks([tick("overlap")]).successShare).toBeNull();
  });
});

it("a day is as bad as its worst tick", () => {
  expect(worstOutcome(["succeeded", "failed", "overlap"])).toBe("failed");
  expect(worstOutcome(["succeeded", "missed"])).toBe("missed");
  expect(worstOutcome(["succeeded", "something new"])).toBe("something new");
  expect(worstOutcome([])).toBeNull();
});
