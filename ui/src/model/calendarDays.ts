/** The days of a calendar as they are edited, and the months of a year. */
export const WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

export interface Days {
  timezone: string;
  dates: readonly string[];
  weekdays: readonly Weekday[];
}

const DAY_MS = 86_400_000;

export const dateText = (year: number, month: number, day: number): string => new Date(Date.UTC(year, month, day)).toISOString().slice(0, 10);

export function weekdayOf(date: string): Weekday {
  return WEEKDAYS[(new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7] as Weekday;
}

/** The weeks of a month, from Monday on; null where a week has days of other months. */
export function weeksOf(year: number, month: number): (string | null)[][] {
  const first = (new Date(Date.UTC(year, month, 1)).getUTCDay() + 6) % 7;
  const count = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const cells = [...Array<null>(first).fill(null), ...Array.from({ length: count }, (_, day) => dateText(year, month, day + 1))];
  while (cells.length % 7) cells.push(null);
  return Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7));
}

export function moved(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

export function toggled<T extends string>(items: readonly T[], one: T): T[] {
  return items.includes(one) ? items.filter((other) => other !== one) : [...items, one];
}

export function sorted(days: Days): Days {
  return { timezone: days.timezone.trim(), dates: [...new Set(days.dates)].sort(), weekdays: WEEKDAYS.filter((day) => days.weekdays.includes(day)) };
}

export const sameDays = (one: Days, other: Days): boolean => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

/** The first excluded day from a day on, of the next two years. */
export function nextExcluded(days: Days, from: string): string | null {
  const dates = new Set(days.dates);
  for (let date = from, left = 731; left > 0; date = moved(date, 1), left--) if (dates.has(date) || days.weekdays.includes(weekdayOf(date))) return date;
  return null;
}

export interface DayDifference {
  name: string;
  kind: "zone" | "weekday" | "date";
  base: string | boolean;
  theirs: string | boolean;
  mine: string | boolean;
}

/** What two people changed since the same beginning. Only time zones can conflict: a day is excluded or not. */
export function differences(base: Days, theirs: Days, mine: Days): DayDifference[] {
  const found: DayDifference[] = [];
  if (base.timezone !== theirs.timezone || base.timezone !== mine.timezone) found.push({ name: "", kind: "zone", base: base.timezone, theirs: theirs.timezone, mine: mine.timezone });
  const compare = (kind: "weekday" | "date", names: readonly string[], has: (days: Days, name: string) => boolean) => {
    for (const name of names) {
      const one = { name, kind, base: has(base, name), theirs: has(theirs, name), mine: has(mine, name) };
      if (one.base !== one.theirs || one.base !== one.mine) found.push(one);
    }
  };
  compare("weekday", WEEKDAYS, (days, name) => (days.weekdays as readonly string[]).includes(name));
  const dates = [...new Set([...base.dates, ...theirs.dates, ...mine.dates])].sort();
  const sets = new Map([base, theirs, mine].map((days) => [days, new Set(days.dates)]));
  compare("date", dates, (days, name) => sets.get(days)?.has(name) ?? false);
  return found;
}

/** Their days with my changes on top. */
export function mergedDays(base: Days, theirs: Days, mine: Days): Days {
  const merge = <T extends string>(was: readonly T[], now: readonly T[], wanted: readonly T[]): T[] => [
    ...now.filter((one) => wanted.includes(one) || !was.includes(one)),
    ...wanted.filter((one) => !was.includes(one) && !now.includes(one)),
  ];
  return sorted({
    timezone: mine.timezone === base.timezone ? theirs.timezone : mine.timezone,
    dates: merge(base.dates, theirs.dates, mine.dates),
    weekdays: merge(base.weekdays, theirs.weekdays, mine.weekdays),
  });
}
