import { millis } from "./times";

/** The fields of a schedule as they are typed. */
export interface ScheduleForm {
  kind: "cron" | "every";
  cron: string;
  every: string;
  timezone: string;
  dst_gap: string;
  dst_fold: string;
  calendar: string;
  on_excluded: string;
  overlap: string;
  catchup: string;
  catchup_window: string;
  jitter_seconds: string;
  start_at: string;
  end_at: string;
  max_runs: string;
}

export interface SavedSchedule {
  cron?: string | string[];
  every?: string;
  timezone?: string;
  dst_gap?: string;
  dst_fold?: string;
  calendar?: string;
  on_excluded?: string;
  overlap?: string;
  catchup?: string;
  catchup_window_seconds?: number;
  jitter_seconds?: number;
  start_at?: string;
  end_at?: string;
}

export const NEW_SCHEDULE: ScheduleForm = {
  kind: "cron",
  cron: "0 9 * * *",
  every: "1h",
  timezone: "UTC",
  dst_gap: "shift",
  dst_fold: "first",
  calendar: "",
  on_excluded: "skip",
  overlap: "skip",
  catchup: "latest",
  catchup_window: "1d",
  jitter_seconds: "0",
  start_at: "",
  end_at: "",
  max_runs: "",
};

const UNITS: [string, number][] = [["d", 86_400], ["h", 3_600], ["m", 60]];

/** Seconds as the server writes durations: "1d", "90m", "45s". */
export function shortDuration(seconds: number): string {
  const [unit, size] = UNITS.find(([, length]) => seconds > 0 && seconds % length === 0) ?? ["s", 1];
  return `${seconds / size}${unit}`;
}

export function formOf(schedule: SavedSchedule, runsLeft: number | null): ScheduleForm {
  return {
    ...NEW_SCHEDULE,
    kind: schedule.every ? "every" : "cron",
    cron: schedule.cron === undefined ? "" : [schedule.cron].flat().join("\n"),
    every: schedule.every ?? "",
    timezone: schedule.timezone ?? "UTC",
    dst_gap: schedule.dst_gap ?? "shift",
    dst_fold: schedule.dst_fold ?? "first",
    calendar: (schedule.calendar ?? "").split("/").pop() ?? "",
    on_excluded: schedule.on_excluded ?? "skip",
    overlap: schedule.overlap ?? "skip",
    catchup: schedule.catchup ?? "latest",
    catchup_window: shortDuration(schedule.catchup_window_seconds ?? 86_400),
    jitter_seconds: String(schedule.jitter_seconds ?? 0),
    start_at: schedule.start_at ?? "",
    end_at: schedule.end_at ?? "",
    max_runs: runsLeft === null ? "" : String(runsLeft),
  };
}

/** A request's fields. Of a form that changes another, only those that differ. */
export function bodyOf(form: ScheduleForm, saved: ScheduleForm | null = null): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  const crons = form.cron.split("\n").map((line) => line.trim()).filter(Boolean);
  const cron = crons.length > 1 ? crons : form.cron;
  if (!saved || saved.kind !== form.kind || saved[form.kind] !== form[form.kind]) body[form.kind] = form.kind === "cron" ? cron : form.every.trim();
  for (const name of ["timezone", "dst_gap", "dst_fold", "on_excluded", "overlap", "catchup", "catchup_window"] as const)
    if (form[name] !== (saved ?? NEW_SCHEDULE)[name]) body[name] = form[name].trim();
  if (form.calendar !== (saved?.calendar ?? "")) body.calendar = form.calendar || null;
  if (form.jitter_seconds !== (saved?.jitter_seconds ?? "0")) body.jitter_seconds = asNumber(form.jitter_seconds) ?? 0;
  for (const name of ["start_at", "end_at"] as const) if (form[name] !== (saved?.[name] ?? "")) body[name] = form[name] || null;
  if (form.max_runs !== (saved?.max_runs ?? "")) body.max_runs = asNumber(form.max_runs);
  return body;
}

/** A number, or the text itself, so that the server says what is wrong with it. */
function asNumber(text: string): unknown {
  const trimmed = text.trim();
  return trimmed === "" ? null : /^\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
}

export interface Difference {
  name: keyof ScheduleForm;
  base: string;
  theirs: string;
  mine: string;
  /** Both changed it, and not to the same. */
  isConflict: boolean;
}

/** What two people changed since the same beginning. */
export function threeWay(base: ScheduleForm, theirs: ScheduleForm, mine: ScheduleForm): Difference[] {
  return (Object.keys(base) as (keyof ScheduleForm)[])
    .filter((name) => base[name] !== theirs[name] || base[name] !== mine[name])
    .map((name) => ({ name, base: base[name], theirs: theirs[name], mine: mine[name], isConflict: base[name] !== theirs[name] && base[name] !== mine[name] && theirs[name] !== mine[name] }));
}

/** Their version with my changes on top. */
export function merged(base: ScheduleForm, theirs: ScheduleForm, mine: ScheduleForm): ScheduleForm {
  const next: Record<string, string> = { ...theirs };
  for (const name of Object.keys(base) as (keyof ScheduleForm)[]) if (base[name] !== mine[name]) next[name] = mine[name];
  return next as unknown as ScheduleForm;
}

/** What a picker for local time shows for an instant, and back. Both are in the browser's zone. */
export function localText(at: string): string {
  if (!at) return "";
  const date = new Date(millis(at));
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function instantOf(local: string): string {
  const at = Date.parse(local);
  return Number.isFinite(at) ? new Date(at).toISOString() : "";
}
