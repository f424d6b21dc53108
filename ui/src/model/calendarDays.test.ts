import { expect, test } from "vitest";
import { type Days, differences, mergedDays, nextExcluded, weeksOf } from "./calendarDays";

const days = (dates: string[], weekdays: Days["weekdays"] = [], timezone = "UTC"): Days => ({ timezone, dates, weekdays });

test("weeks begin on Monday and have all days of their month", () => {
  const weeks = weeksOf(2026, 1);
  expect(weeks.map((week) => week.length)).toEqual([7, 7, 7, 7, 7].slice(0, weeks.length));
  expect(weeks[0]?.indexOf("2026-02-01")).toBe(6);
  expect(weeks.flat().filter(Boolean)).toHaveLength(28);
  expect(weeksOf(2028, 1).flat().filter(Boolean)).toHaveLength(29);
});

test("the next excluded day is a date or a day of the week", () => {
  expect(nextExcluded(days(["2026-12-25"], ["SUN"]), "2026-12-21")).toBe("2026-12-25");
  expect(nextExcluded(days([], ["SUN"]), "2026-12-21")).toBe("2026-12-27");
  expect(nextExcluded(days(["2020-01-01"]), "2026-12-21")).toBeNull();
});

test("changes of two people are merged day by day", () => {
  const base = days(["2026-12-25", "2026-12-26"], ["SUN"]);
  const theirs = days(["2026-12-25", "2026-12-31"], ["SUN", "SAT"], "Europe/Berlin");
  const mine = days(["2026-12-26", "2027-01-01"], []);
  expect(mergedDays(base, theirs, mine)).toEqual(days(["2026-12-31", "2027-01-01"], ["SAT"], "Europe/Berlin"));
  expect(differences(base, theirs, mine).map((one) => one.name)).toEqual(["", "SAT", "SUN", "2026-12-25", "2026-12-26", "2026-12-31", "2027-01-01"]);
  expect(mergedDays(base, theirs, base)).toEqual(days([...theirs.dates], ["SAT", "SUN"], "Europe/Berlin"));
});
