import { expect, test } from "vitest";
import type { OverviewShown } from "~/api/schema";
import { healthOf } from "./health";

const none = { count: 0, more: false };
const calm: OverviewShown = {
  at: "2026-11-18T08:00:00Z", ready: none, held: none, running: none, scheduled: none, failed: none, oldest_ready_seconds: null, oldest_ready_queue: null,
  workers: 1, slots: 4, late_ticks: none, late_seconds: null, is_empty: false, attention: [], has_more_attention: false,
  next_hour: { since: "2026-11-18T08:00:00Z", minutes: [], more: false },
};

test("the worst is told first", () => {
  expect(healthOf(calm)).toEqual({ tone: "good", sentence: "All ticks on time. Nothing waits for long." });
  const waiting = { ...calm, ready: { count: 3, more: false }, oldest_ready_seconds: 250, oldest_ready_queue: "mail" };
  expect(healthOf(waiting)).toEqual({ tone: "warning", sentence: "All ticks on time. Runs in mail have waited for 4 min." });
  expect(healthOf({ ...waiting, workers: 0 }).tone).toBe("bad");
  expect(healthOf({ ...waiting, oldest_ready_seconds: 2 }).tone).toBe("good");
  const late = { ...waiting, late_ticks: { count: 1, more: false }, late_seconds: 61 };
  expect(healthOf(late)).toEqual({ tone: "bad", sentence: "1 job should have fired 1 min ago. Runs in mail have waited for 4 min." });
  const paused = { ...late, attention: [{ kind: "pause" as const, name: "*", reference: "*", of: "everything" as const }] };
  expect(healthOf(paused)).toEqual({ tone: "warning", sentence: "Everything is paused." });
  const failing = { ...calm, attention: [{ kind: "failing_job" as const, name: "a", reference: "a", count: 2 }] };
  expect(healthOf(failing).sentence).toBe("All ticks on time. 1 job fails.");
});
