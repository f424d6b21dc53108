export interface CronPart {
  text: string;
  start: number;
  end: number;
  /** What the part says, or null for spaces and for text that is no field. */
  field: "second" | "minute" | "hour" | "day" | "month" | "weekday" | "year" | "zone" | "alias" | null;
}

const FIVE = ["minute", "hour", "day", "month", "weekday"] as const;
const NAMES: Record<number, readonly CronPart["field"][]> = { 5: FIVE, 6: ["second", ...FIVE], 7: ["second", ...FIVE, "year"] };

/** The parts of an expression, spaces included, so that together they are the whole text. */
export function cronParts(expression: string): CronPart[] {
  const words = [...expression.matchAll(/\s+|\S+/g)].map((found) => ({ text: found[0], start: found.index, end: found.index + found[0].length }));
  const isWord = (text: string) => /\S/.test(text);
  const isZone = (text: string) => /^(CRON_TZ|TZ)=/i.test(text);
  const fields = words.filter(({ text }) => isWord(text) && !isZone(text));
  // While it is typed, the fields that are there are those of five.
  const names = NAMES[fields.length] ?? (fields.length < 5 ? FIVE : []);
  return words.map((word) => {
    if (!isWord(word.text)) return { ...word, field: null };
    if (isZone(word.text)) return { ...word, field: "zone" as const };
    if (word.text.startsWith("@")) return { ...word, field: "alias" as const };
    return { ...word, field: names[fields.indexOf(word)] ?? null };
  });
}

export interface Built {
  kind: "minutes" | "hours" | "daily" | "weekly" | "monthly";
  every: number;
  time: string;
  weekdays: readonly string[];
  day: string;
}

export const WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"] as const;

/** The expression that the builder's fields stand for. */
export function build({ kind, every, time, weekdays, day }: Built): string {
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  if (kind === "minutes") return every === 1 ? "* * * * *" : `*/${every} * * * *`;
  if (kind === "hours") return every === 1 ? `${minute} * * * *` : `${minute} */${every} * * *`;
  if (kind === "daily") return `${minute} ${hour} * * *`;
  if (kind === "monthly") return `${minute} ${hour} ${day} * *`;
  const chosen = WEEKDAYS.filter((name) => weekdays.includes(name));
  const isWork = chosen.length === 5 && !chosen.includes("SAT") && !chosen.includes("SUN");
  return `${minute} ${hour} * * ${chosen.length === 0 || chosen.length === 7 ? "*" : isWork ? "MON-FRI" : chosen.join(",")}`;
}
