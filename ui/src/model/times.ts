/** Times are ISO 8601 texts or epoch milliseconds. All formats come from Intl. */
export type Instant = string | number | Date;
export type ZoneChoice = "local" | "utc" | "job";

export const LOCALE = "en-GB";

export function millis(at: Instant): number {
  return typeof at === "number" ? at : at instanceof Date ? at.getTime() : Date.parse(at);
}

export function browserZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

export function zoneName(choice: ZoneChoice, jobZone?: string | null): string {
  if (choice === "utc") return "UTC";
  if (choice === "job" && jobZone && isZone(jobZone)) return jobZone;
  return browserZone();
}

export function isZone(name: string): boolean {
  try {
    formatter(name, { hour: "2-digit" });
    return true;
  } catch {
    return false;
  }
}

const formatters = new Map<string, Intl.DateTimeFormat>();

function formatter(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${JSON.stringify(options)}`;
  let found = formatters.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat(LOCALE, { ...options, timeZone: zone, hourCycle: "h23" });
    formatters.set(key, found);
  }
  return found;
}

const HOUR = 3_600_000;
const CLOCK: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const CLOCK_MS: Intl.DateTimeFormatOptions = { ...CLOCK, fractionalSecondDigits: 3 };
const DAY: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" };
const DAY_YEAR: Intl.DateTimeFormatOptions = { ...DAY, year: "numeric" };

export type Precision = "minute" | "second" | "millisecond";

export function clockTime(at: Instant, zone: string, precision: Precision = "second"): string {
  const options = precision === "millisecond" ? CLOCK_MS : precision === "second" ? CLOCK : { ...CLOCK, second: undefined };
  return formatter(zone, options).format(millis(at));
}

export function dayOf(at: Instant, zone: string): string {
  const parts = formatter(zone, { year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(millis(at));
  const get = (type: string) => parts.find((part) => part.type === type)?.value ?? "";
  return `${get("year")}-${get("month")}-${get("day")}`;
}

/** The first moment of a day such as 2026-11-18 in a zone, also where the clocks change at midnight. */
export function startOfDay(day: string, zone: string): number {
  const noon = Date.parse(`${day}T12:00:00Z`);
  const shift = Date.parse(`${dayOf(noon, zone)}T${clockTime(noon, zone)}Z`) - noon;
  let at = Date.parse(`${day}T00:00:00Z`) - shift;
  // A clock change between midnight and noon moves it by its length.
  const there = Date.parse(`${dayOf(at, zone)}T${clockTime(at, zone)}Z`);
  at -= there - Date.parse(`${day}T00:00:00Z`);
  return dayOf(at, zone) === day ? at : at + HOUR;
}

/** "14:03:22" today, "17 Nov, 14:03:22" this year, with the year otherwise. */
export function absolute(at: Instant, zone: string, now: number, precision: Precision = "second"): string {
  const time = clockTime(at, zone, precision);
  const day = dayOf(at, zone);
  if (day === dayOf(now, zone)) return time;
  const isThisYear = day.slice(0, 4) === dayOf(now, zone).slice(0, 4);
  return `${formatter(zone, isThisYear ? DAY : DAY_YEAR).format(millis(at))}, ${time}`;
}

/** "14:03:22 – 14:10:00"; the day is said twice only if it differs. */
export function timeRange(from: Instant, to: Instant, zone: string, now: number): string {
  const end = dayOf(from, zone) === dayOf(to, zone) ? clockTime(to, zone) : absolute(to, zone, now);
  return `${absolute(from, zone, now)} – ${end}`;
}

/** Below an axis: the time of day, the day, or the month, by how much the axis shows. */
export function axisTime(at: Instant, zone: string, length: number): string {
  if (length <= 36 * HOUR) return clockTime(at, zone, "minute");
  return formatter(zone, DAY).format(millis(at));
}

/** "Wed, 18 Nov 2026, 14:03:22" */
export function full(at: Instant, zone: string, precision: Precision = "second"): string {
  const day = formatter(zone, { ...DAY_YEAR, weekday: "short" }).format(millis(at));
  return `${day}, ${clockTime(at, zone, precision)}`;
}

/** "UTC+1", as it was at that instant. */
export function offset(at: Instant, zone: string): string {
  const found = formatter(zone, { timeZoneName: "shortOffset" })
    .formatToParts(millis(at))
    .find((part) => part.type === "timeZoneName")?.value;
  return (found ?? "").replace("GMT", "UTC");
}

/** "Europe/Berlin, UTC+1"; "UTC" is said once. */
export function zoneLabel(zone: string, at: Instant): string {
  return zone === "UTC" || zone === "Etc/UTC" ? "UTC" : `${zone.replaceAll("_", " ")}, ${offset(at, zone)}`;
}

const UNITS: [string, number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
];

/** "now", "12 s ago", "3 min ago", "in 2 h", "in 5 d". Past a month, only days. */
export function relative(at: Instant, now: number): string {
  const seconds = (millis(at) - now) / 1000;
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  let told = `${Math.floor(size)} s`;
  for (const [unit, length] of UNITS) {
    if (size >= length) {
      told = `${Math.floor(size / length)} ${unit}`;
      break;
    }
  }
  return seconds < 0 ? `${told} ago` : `in ${told}`;
}

/** "0 ms", "340 ms", "1.2 s", "48 s", "3 min 20 s", "2 h 5 min", "4 d 3 h". Two units at most. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "";
  const sign = seconds < 0 ? "−" : "";
  let left = Math.abs(seconds);
  if (left < 0.9995) return `${sign}${Math.round(left * 1000)} ms`;
  if (left < 9.95) return `${sign}${left.toFixed(1)} s`;
  left = Math.round(left);
  if (left < 60) return `${sign}${left} s`;
  const parts: string[] = [];
  for (const [unit, length] of [...UNITS, ["s", 1] as [string, number]]) {
    const count = Math.floor(left / length);
    if (count > 0 || parts.length > 0) {
      if (count > 0) parts.push(`${count} ${unit}`);
      left -= count * length;
      if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
    }
  }
  return sign + parts.join(" ");
}

/** A duration for a glance, in its largest unit: "48 s", "15 min", "2 h", "4 d". */
export function roughly(seconds: number): string {
  const found = UNITS.find(([, length]) => Math.abs(seconds) >= length);
  return found ? `${Math.floor(seconds / found[1])} ${found[0]}` : duration(seconds);
}

/** Whole seconds as a countdown: "12:04", "1:02:09", "3 d 4 h". */
export function countdown(seconds: number): string {
  const left = Math.max(0, Math.ceil(seconds));
  if (left >= 86_400) return duration(left);
  const hours = Math.floor(left / 3600);
  const minutes = Math.floor((left % 3600) / 60);
  const rest = String(left % 60).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

const DURATION = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?$/;

/** Seconds of "90s", "1h30m" or "2d"; null for anything else. */
export function parseDuration(text: string): number | null {
  const found = DURATION.exec(text.trim());
  if (!found || found[0] === "") return null;
  const [days, hours, minutes, seconds] = found.slice(1).map((part) => (part ? Number(part) : 0));
  return (days ?? 0) * 86_400 + (hours ?? 0) * 3_600 + (minutes ?? 0) * 60 + (seconds ?? 0);
}
