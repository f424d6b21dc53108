import { expect, test } from "vitest";
import { bodyOf, formOf, merged, NEW_SCHEDULE, shortDuration, threeWay } from "./scheduleForm";

test("a form of a saved schedule asks for no change", () => {
  const saved = formOf({ cron: ["0 9 * * *", "0 18 * * *"], timezone: "Europe/Zurich", calendar: "team/holidays", catchup_window_seconds: 5400, jitter_seconds: 30 }, 3);
  expect(saved).toMatchObject({ kind: "cron", cron: "0 9 * * *\n0 18 * * *", calendar: "holidays", catchup_window: "90m", jitter_seconds: "30", max_runs: "3" });
  expect(bodyOf(saved, saved)).toEqual({});
});

test("a change names only the fields that differ", () => {
  const saved = formOf({ cron: "0 9 * * *", timezone: "UTC", end_at: "2027-01-01T00:00:00Z", calendar: "x" }, null);
  expect(bodyOf({ ...saved, cron: "0 10 * * *", end_at: "", calendar: "", jitter_seconds: "60" }, saved)).toEqual({ cron: "0 10 * * *", end_at: null, calendar: null, jitter_seconds: 60 });
  expect(bodyOf({ ...saved, kind: "every", every: "5m" }, saved)).toEqual({ every: "5m" });
  expect(bodyOf({ ...saved, max_runs: "many" }, saved)).toEqual({ max_runs: "many" });
  expect(bodyOf({ ...saved, cron: "0 9 * * *\n0 18 * * *" }, saved)).toEqual({ cron: ["0 9 * * *", "0 18 * * *"] });
});

test("a new schedule names what is not the default", () => {
  expect(bodyOf(NEW_SCHEDULE)).toEqual({ cron: "0 9 * * *" });
  expect(bodyOf({ ...NEW_SCHEDULE, kind: "every", overlap: "allow_all" })).toEqual({ every: "1h", overlap: "allow_all" });
});

test("of two changes, those of both are kept, and a conflict is told", () => {
  const base = NEW_SCHEDULE;
  const theirs = { ...base, timezone: "Europe/Zurich", cron: "0 8 * * *" };
  const mine = { ...base, overlap: "allow_all", cron: "0 7 * * *" };
  expect(threeWay(base, theirs, mine).map(({ name, isConflict }) => [name, isConflict])).toEqual([["cron", true], ["timezone", false], ["overlap", false]]);
  expect(merged(base, theirs, mine)).toEqual({ ...base, timezone: "Europe/Zurich", overlap: "allow_all", cron: "0 7 * * *" });
});

test("durations are written in the largest unit that fits", () => {
  expect([0, 45, 60, 5400, 7200, 86_400].map(shortDuration)).toEqual(["0s", "45s", "1m", "90m", "2h", "1d"]);
});
