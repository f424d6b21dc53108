import { expect, test } from "vitest";
import { readCalendar } from "./icalendar";

const event = (...lines: string[]) => ["BEGIN:VCALENDAR", "BEGIN:VEVENT", ...lines, "END:VEVENT", "END:VCALENDAR"].join("\r\n");
const dates = (text: string, until = 2028) => readCalendar(text, until).days.map((day) => day.date);

test("an event takes all its days, and lines may be folded", () => {
  const text = event("SUMMARY:Christ", " mas\\, and Boxing Day", "DTSTART;VALUE=DATE:20261225", "DTEND;VALUE=DATE:20261227");
  expect(readCalendar(text, 2026)).toEqual({ days: [{ date: "2026-12-25", name: "Christmas, and Boxing Day" }, { date: "2026-12-26", name: "Christmas, and Boxing Day" }], skipped: [] });
});

test("yearly rules are followed, also by place in the month", () => {
  expect(dates(event("DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY"))).toEqual(["2026-01-01", "2027-01-01", "2028-01-01"]);
  expect(dates(event("DTSTART;VALUE=DATE:20261126", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"))).toEqual(["2026-11-26", "2027-11-25", "2028-11-23"]);
  expect(dates(event("DTSTART;VALUE=DATE:20260525", "RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO;COUNT=2"))).toEqual(["2026-05-25", "2027-05-31"]);
  expect(dates(event("DTSTART;VALUE=DATE:20240229", "RRULE:FREQ=YEARLY;UNTIL=20280301"))).toEqual(["2024-02-29", "2028-02-29"]);
  expect(dates(event("DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY", "EXDATE;VALUE=DATE:20270101"))).toEqual(["2026-01-01", "2028-01-01"]);
});

test("what is no whole day or repeats otherwise is named, and cancelled events are left out", () => {
  const text = event("SUMMARY:Meeting", "DTSTART:20261225T090000Z") + event("SUMMARY:Weekly", "DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=WEEKLY") + event("SUMMARY:Off", "DTSTART;VALUE=DATE:20261225", "STATUS:CANCELLED") + event("SUMMARY:Bad", "DTSTART;VALUE=DATE:20261399");
  expect(readCalendar(text, 2028)).toEqual({ days: [], skipped: [{ name: "Meeting", reason: "timed" }, { name: "Weekly", reason: "rule" }, { name: "Bad", reason: "wrong" }] });
});

test("any text is read in bounded time", () => {
  expect(readCalendar("x".repeat(1_000_000), 2028)).toEqual({ days: [], skipped: [] });
  expect(dates(event("DTSTART;VALUE=DATE:20260101", "DTEND;VALUE=DATE:99991231"))).toHaveLength(366);
  expect(dates(event("DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY;INTERVAL=0"))).toHaveLength(3);
});
