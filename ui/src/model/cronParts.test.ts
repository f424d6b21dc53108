import { expect, test } from "vitest";
import { build, cronParts } from "./cronParts";

const fields = (expression: string) => cronParts(expression).filter((part) => part.text.trim()).map((part) => part.field);

test("each part of an expression is named, by how many there are", () => {
  expect(fields("30 9 * * MON-FRI")).toEqual(["minute", "hour", "day", "month", "weekday"]);
  expect(fields("0 30 9 * * *")).toEqual(["second", "minute", "hour", "day", "month", "weekday"]);
  expect(fields("0 0 0 1 1 ? 2027")).toEqual(["second", "minute", "hour", "day", "month", "weekday", "year"]);
  expect(fields("CRON_TZ=Europe/Zurich 0 9 * * *")).toEqual(["zone", "minute", "hour", "day", "month", "weekday"]);
  expect(fields("@daily")).toEqual(["alias"]);
  expect(fields("30 9")).toEqual(["minute", "hour"]);
  expect(fields("1 2 3 4 5 6 7 8")).toEqual(Array(8).fill(null));
});

test("the parts together are the text, whatever it is", () => {
  for (const expression of ["", "  ", " 0  9 * * * ", "a\tb\u00a0c", "*/5 * * * *", "<b> & ‮ 5"]) expect(cronParts(expression).map((part) => part.text).join("")).toBe(expression);
});

test("the builder writes short expressions", () => {
  const base = { kind: "daily" as const, every: 1, time: "09:05", weekdays: ["MON"], day: "1" };
  expect(build(base)).toBe("5 9 * * *");
  expect(build({ ...base, kind: "minutes" })).toBe("* * * * *");
  expect(build({ ...base, kind: "minutes", every: 15 })).toBe("*/15 * * * *");
  expect(build({ ...base, kind: "hours", every: 6 })).toBe("5 */6 * * *");
  expect(build({ ...base, kind: "monthly", day: "LW" })).toBe("5 9 LW * *");
  expect(build({ ...base, kind: "weekly", weekdays: ["FRI", "MON", "TUE", "WED", "THU"] })).toBe("5 9 * * MON-FRI");
  expect(build({ ...base, kind: "weekly", weekdays: ["SUN", "SAT"] })).toBe("5 9 * * SAT,SUN");
  expect(build({ ...base, kind: "weekly", weekdays: [] })).toBe("5 9 * * *");
});
