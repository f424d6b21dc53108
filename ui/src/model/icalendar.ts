/** Whole days from an iCalendar file, such as public holidays. */
import { dateText, moved } from "./calendarDays";

export interface FoundDay {
  date: string;
  name: string;
}

export interface Imported {
  days: FoundDay[];
  /** The names of events that are not whole days, or that repeat in a way that is not understood. */
  skipped: { name: string; reason: "timed" | "rule" | "wrong" }[];
}

interface Property {
  name: string;
  parameters: string;
  value: string;
}

const EVENTS_MAX = 20_000;
const LENGTH_MAX = 366;
const BY_DAY = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/** Lines that begin with a blank go on from the line before. */
function propertiesOf(text: string): Property[] {
  return text
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/\n[ \t]/g, "")
    .split("\n")
    .map((line) => /^([A-Za-z-]+)((?:;[^":]*(?:"[^"]*"[^":]*)*)?):(.*)$/.exec(line))
    .filter((found) => found !== null)
    .map((found) => ({ name: (found[1] ?? "").toUpperCase(), parameters: (found[2] ?? "").toUpperCase(), value: found[3] ?? "" }));
}

/** Events that repeat every year are followed until the end of the year `until`. */
export function readCalendar(text: string, until: number): Imported {
  const found: Imported = { days: [], skipped: [] };
  const seen = new Set<string>();
  let event: Property[] | null = null;
  let count = 0;
  for (const property of propertiesOf(text)) {
    const kind = property.value.trim().toUpperCase();
    if (property.name === "BEGIN" && kind === "VEVENT") event = [];
    else if (property.name === "END" && kind === "VEVENT" && event) {
      if (count++ < EVENTS_MAX)
        addEvent(event, until, found, (date, name) => {
          if (!seen.has(date)) found.days.push({ date, name });
          seen.add(date);
        });
      event = null;
    } else event?.push(property);
  }
  found.days.sort((one, other) => (one.date < other.date ? -1 : 1));
  return found;
}

function addEvent(event: readonly Property[], until: number, found: Imported, add: (date: string, name: string) => void): void {
  const of = (name: string) => event.find((property) => property.name === name);
  const name = (of("SUMMARY")?.value ?? "").replaceAll(/\\([,;\\])/g, "$1").replaceAll(/\\n/gi, " ").trim();
  if (of("STATUS")?.value.trim().toUpperCase() === "CANCELLED") return;
  const start = of("DTSTART");
  const first = start && dayOf(start.value);
  if (!first) return void found.skipped.push({ name, reason: "wrong" });
  if (/T\d/.test(start.value)) return void found.skipped.push({ name, reason: "timed" });
  const length = lengthOf(first, of("DTEND")?.value, of("DURATION")?.value);
  const starts = startsOf(first, of("RRULE")?.value, until);
  if (!starts) return void found.skipped.push({ name, reason: "rule" });
  const dropped = new Set(event.filter((property) => property.name === "EXDATE").flatMap((property) => property.value.split(",").map(dayOf)));
  const more = event.filter((property) => property.name === "RDATE").flatMap((property) => property.value.split(",").map(dayOf));
  for (const day of [...starts, ...more]) if (day && !dropped.has(day)) for (let index = 0; index < length; index++) add(moved(day, index), name);
}

function dayOf(value: string | undefined): string | null {
  const found = /^\s*(\d{4})(\d\d)(\d\d)/.exec(value ?? "");
  if (!found) return null;
  const date = dateText(Number(found[1]), Number(found[2]) - 1, Number(found[3]));
  return date === `${found[1]}-${found[2]}-${found[3]}` ? date : null;
}

/** The end of an event is the first day after it. */
function lengthOf(first: string, end: string | undefined, lasting: string | undefined): number {
  const last = dayOf(end);
  const weeks = /^P(\d+)([DW])/.exec(lasting ?? "");
  const days = last ? (Date.parse(last) - Date.parse(first)) / 86_400_000 : weeks ? Number(weeks[1]) * (weeks[2] === "W" ? 7 : 1) : 1;
  return Math.max(1, Math.min(LENGTH_MAX, days));
}

/** The days on which an event begins; null for a rule that is not yearly. */
function startsOf(first: string, rule: string | undefined, until: number): string[] | null {
  if (!rule) return [first];
  const parts = new Map(rule.toUpperCase().split(";").map((part) => part.trim().split("=") as [string, string]));
  const known = new Set(["FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "BYDAY", "WKST"]);
  if (parts.get("FREQ") !== "YEARLY" || [...parts.keys()].some((name) => !known.has(name))) return null;
  const [year, month, day] = first.split("-").map(Number) as [number, number, number];
  const months = parts.get("BYMONTH")?.split(",").map(Number) ?? [month];
  const places = parts.get("BYDAY")?.split(",").map((place) => /^([+-]?\d)(MO|TU|WE|TH|FR|SA|SU)$/.exec(place));
  if (places?.some((place) => place === null) || (places && parts.has("BYMONTHDAY"))) return null;
  const monthDays = parts.get("BYMONTHDAY")?.split(",").map(Number) ?? [day];
  const last = dayOf(parts.get("UNTIL")) ?? `${until}-12-31`;
  const most = Number(parts.get("COUNT") ?? Infinity);
  const found: string[] = [];
  for (let at = year; at <= until && found.length < most; at += Math.max(1, Number(parts.get("INTERVAL") ?? 1)))
    for (const one of months) {
      const days = places
        ? places.map((place) => nthWeekday(at, one, Number(place?.[1]), BY_DAY.indexOf(place?.[2] ?? "")))
        : monthDays.map((number) => dateText(at, one - 1 + (number < 0 ? 1 : 0), number < 0 ? number + 1 : number));
      // A day that the month does not have is not in it: 29 February.
      for (const date of days) if (date?.slice(0, 7) === `${at}-${String(one).padStart(2, "0")}` && date >= first && date <= last && found.length < most) found.push(date);
    }
  return found;
}

/** Such as the last Monday in May (-1). */
function nthWeekday(year: number, month: number, nth: number, weekday: number): string | null {
  const edge = new Date(nth > 0 ? Date.UTC(year, month - 1, 1) : Date.UTC(year, month, 0));
  const ahead = (weekday - ((edge.getUTCDay() + 6) % 7) + 7) % 7;
  if (nth === 0) return null;
  return moved(edge.toISOString().slice(0, 10), nth > 0 ? ahead + 7 * (nth - 1) : (ahead === 0 ? 0 : ahead - 7) + 7 * (nth + 1));
}
