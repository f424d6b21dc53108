import { describe, expect, it, test } from "vitest";
import { absolute, countdown, dayOf, duration, full, isZone, offset, parseDuration, relative, roughly, startOfDay, timeRange, zoneLabel } from "./times";

const NOW = Date.parse("2026-11-18T20:00:00Z");

describe("duration", () => {
  it.each([
    [0, "0 ms"],
    [0.34, "340 ms"],
    [0.99949, "999 ms"],
    [0.9999, "1.0 s"],
    [1.24, "1.2 s"],
    [9.96, "10 s"],
    [59.6, "1 min"],
    [60, "1 min"],
    [200, "3 min 20 s"],
    [3600, "1 h"],
    [3605, "1 h"],
    [7500, "2 h 5 min"],
    [356_400, "4 d 3 h"],
    [-2, "−2.0 s"],
    [Number.NaN, ""],
  ])("of %s seconds is %s", (seconds, told) => expect(duration(seconds)).toBe(told));
});

describe("relative", () => {
  it.each([
    [0, "now"],
    [-12, "12 s ago"],
    [-200, "3 min ago"],
    [7300, "in 2 h"],
    [86_400 * 40, "in 40 d"],
  ])("%s seconds from now is %s", (seconds, told) => expect(relative(NOW + seconds * 1000, NOW)).toBe(told));
});

describe("absolute", () => {
  it("leaves out the day of today and the year of this year", () => {
    expect(absolute("2026-11-18T13:03:22Z", "UTC", NOW)).toBe("13:03:22");
    expect(absolute("2026-11-17T13:03:22.5Z", "UTC", NOW, "millisecond")).toBe("17 Nov, 13:03:22.500");
    expect(absolute("2025-11-17T13:03:22Z", "UTC", NOW, "minute")).toBe("17 Nov 2025, 13:03");
  });
  it("decides about today in the zone that is shown", () => {
    expect(absolute("2026-11-18T23:30:00Z", "Asia/Tokyo", NOW)).toBe("08:30:00");
    expect(absolute("2026-11-18T01:00:00Z", "America/New_York", NOW)).toBe("17 Nov, 20:00:00");
  });
});

const ZONES = [
  "UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Sao_Paulo", "America/St_Johns",
  "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia",
];

describe("zones", () => {
  it.each(ZONES)("%s shows each hour of the clock changes of a year at the wall time of its offset", (zone) => {
    for (const start of ["2026-03-08T00:00:00Z", "2026-03-28T18:00:00Z", "2026-10-03T12:00:00Z", "2026-10-24T18:00:00Z", "2026-10-31T18:00:00Z"]) {
      for (let hour = 0; hour < 24; hour += 1) {
        const at = Date.parse(start) + hour * 3_600_000;
        const found = /^UTC(?:([+-−])(\d+)(?::(\d+))?)?$/.exec(offset(at, zone));
        expect(found).not.toBeNull();
        const minutes = (Number(found?.[2] ?? 0) * 60 + Number(found?.[3] ?? 0)) * (found?.[1] === "+" || !found?.[1] ? 1 : -1);
        const wall = new Date(at + minutes * 60_000).toISOString();
        expect(dayOf(at, zone)).toBe(wall.slice(0, 10));
        expect(full(at, zone).endsWith(wall.slice(11, 19))).toBe(true);
      }
    }
  });
  it("says the zone with its offset at that instant", () => {
    expect(zoneLabel("Europe/Berlin", "2026-11-18T12:00:00Z")).toBe("Europe/Berlin, UTC+1");
    expect(zoneLabel("Europe/Berlin", "2026-07-18T12:00:00Z")).toBe("Europe/Berlin, UTC+2");
    expect(zoneLabel("UTC", NOW)).toBe("UTC");
    expect(isZone("Mars/Olympus")).toBe(false);
  });
});

describe("countdown and parseDuration", () => {
  it.each([
    [724, "12:04"],
    [3729, "1:02:09"],
    [-3, "0:00"],
    [0.2, "0:01"],
    [273_600, "3 d 4 h"],
  ])("%s counts down as %s", (seconds, told) => expect(countdown(seconds)).toBe(told));
  it.each([
    ["90s", 90],
    ["1h30m", 5400],
    ["2d", 172_800],
    ["1.5s", 1.5],
    ["", null],
    ["soon", null],
    ["5", null],
  ])("%s is %s seconds", (text, seconds) => expect(parseDuration(text)).toBe(seconds));
});

describe("the start of a day", () => {
  it.each([
    ["2026-03-29", "Europe/Berlin", "2026-03-28T23:00:00.000Z"],
    ["2026-03-30", "Europe/Berlin", "2026-03-29T22:00:00.000Z"],
    ["2026-10-25", "Europe/Berlin", "2026-10-24T22:00:00.000Z"],
    ["2026-11-18", "America/New_York", "2026-11-18T05:00:00.000Z"],
    ["2026-11-18", "Asia/Kolkata", "2026-11-17T18:30:00.000Z"],
    ["2026-11-18", "UTC", "2026-11-18T00:00:00.000Z"],
    // There, clocks skip the hour after midnight.
    ["2026-03-29", "Asia/Beirut", "2026-03-28T22:00:00.000Z"],
  ])("%s in %s", (day, zone, at) => expect(new Date(startOfDay(day, zone)).toISOString()).toBe(at));
});

test.each([
  [0.4, "400 ms"],
  [48, "48 s"],
  [910, "15 min"],
  [7_199, "1 h"],
  [400_000, "4 d"],
])("%s seconds are roughly %s", (seconds, told) => expect(roughly(seconds)).toBe(told));

test("a range of times says the day twice only if it differs", () => {
  const [from, near, far] = ["2026-11-17T08:00:00Z", "2026-11-17T09:30:00Z", "2026-11-18T09:30:00Z"];
  expect(timeRange(from, near, "UTC", NOW)).toBe("17 Nov, 08:00:00 – 09:30:00");
  expect(timeRange(from, far, "UTC", Date.parse("2026-12-01T00:00:00Z"))).toBe("17 Nov, 08:00:00 – 18 Nov, 09:30:00");
});
