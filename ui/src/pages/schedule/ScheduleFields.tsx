import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { ApiError } from "~/api/problems";
import { SelectField, TextField } from "~/components/Field";
import { Segments } from "~/components/Segments";
import { instantOf, localText, type ScheduleForm } from "~/model/scheduleForm";
import { browserZone, zoneLabel } from "~/model/times";
import { text } from "~/texts/en";
import { Builder } from "./Builder";
import { CronField } from "./CronField";
import styles from "./ScheduleEditor.module.css";

const { scheduling: words } = text;
const ZONES = typeof Intl.supportedValuesOf === "function" ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC"];

interface Properties {
  form: ScheduleForm;
  onChange: (change: Partial<ScheduleForm>) => void;
  problem: ApiError | null;
}

/** When a job fires, and how it deals with what goes wrong. */
export function ScheduleFields({ form, onChange, problem }: Properties) {
  const zones = useId();
  const calendars = useQuery({ queryKey: key("calendars"), queryFn: () => data(client.GET("/v1/calendars")) });
  const of = (name: string) => (problem?.field === name ? problem.detail.replace(new RegExp(`^${name}: `), "") : undefined);
  const choice = (name: "dst_gap" | "dst_fold" | "on_excluded" | "overlap" | "catchup", label: string) => (
    <SelectField label={label} value={form[name]} error={of(name)} hint={text.jobs.schedule.choices[name]?.[form[name]]} onChange={(event) => onChange({ [name]: event.target.value })} options={Object.entries(words.options[name] ?? {}).map(([value, shown]) => ({ value, label: shown }))} />
  );
  const names = [...new Set([...(calendars.data?.items.map((calendar) => calendar.name) ?? []), ...(form.calendar ? [form.calendar] : [])])];
  return (
    <>
      <section className={styles.section}>
        <div className={styles.head}>
          <h2>{words.when}</h2>
          <Segments label={words.scheduleKind} value={form.kind} onChange={(value) => onChange({ kind: value as "cron" })} options={(["cron", "every"] as const).map((value) => ({ value, label: words.scheduleKinds[value] ?? value }))} />
        </div>
        {form.kind === "cron" ? (
          <>
            <CronField value={form.cron} onChange={(cron) => onChange({ cron })} error={of("cron")} place={problem?.field === "cron" ? problem.place : null} />
            <Builder onChange={(cron) => onChange({ cron })} />
          </>
        ) : (
          <TextField label={words.every} hint={words.everyHint} isMono value={form.every} error={of("every")} onChange={(event) => onChange({ every: event.target.value })} />
        )}
        {form.kind === "cron" && (
          <>
            <TextField label={words.zone} list={zones} value={form.timezone} error={of("timezone")} onChange={(event) => onChange({ timezone: event.target.value })} />
            <datalist id={zones}>
              {ZONES.map((zone) => (
                <option key={zone} value={zone} />
              ))}
            </datalist>
          </>
        )}
      </section>
      <section className={styles.section}>
        <h2>{words.details}</h2>
        <div className={styles.grid}>
          {choice("overlap", words.overlap)}
          {choice("catchup", words.catchup)}
          {form.kind === "cron" && form.timezone !== "UTC" && choice("dst_gap", words.gap)}
          {form.kind === "cron" && form.timezone !== "UTC" && choice("dst_fold", words.fold)}
          <SelectField label={words.calendar} value={form.calendar} error={of("calendar")} onChange={(event) => onChange({ calendar: event.target.value })} options={[{ value: "", label: words.noCalendar }, ...names.map((name) => ({ value: name, label: name }))]} />
          {form.calendar !== "" && choice("on_excluded", words.excluded)}
          <TextField label={words.window} hint={words.windowHint} value={form.catchup_window} error={of("catchup_window")} onChange={(event) => onChange({ catchup_window: event.target.value })} />
          <TextField label={words.jitter} hint={words.jitterHint} inputMode="numeric" value={form.jitter_seconds} error={of("jitter_seconds")} onChange={(event) => onChange({ jitter_seconds: event.target.value })} />
          <TextField label={words.start} isOptional type="datetime-local" hint={zoneLabel(browserZone(), Date.now())} value={localText(form.start_at)} error={of("start_at")} onChange={(event) => onChange({ start_at: instantOf(event.target.value) })} />
          <TextField label={words.end} isOptional type="datetime-local" hint={zoneLabel(browserZone(), Date.now())} value={localText(form.end_at)} error={of("end_at")} onChange={(event) => onChange({ end_at: instantOf(event.target.value) })} />
          <TextField label={words.maxRuns} isOptional hint={words.maxRunsHint} inputMode="numeric" value={form.max_runs} error={of("max_runs")} onChange={(event) => onChange({ max_runs: event.target.value })} />
        </div>
      </section>
    </>
  );
}

/** The fields above that can show what is wrong with them. */
export const SHOWN_FIELDS = new Set(["cron", "every", "timezone", "overlap", "catchup", "dst_gap", "dst_fold", "calendar", "on_excluded", "catchup_window", "jitter_seconds", "start_at", "end_at", "max_runs"]);
