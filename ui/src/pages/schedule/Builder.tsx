import { useState } from "react";
import { Button } from "~/components/Button";
import { SelectField, TextField } from "~/components/Field";
import { build, type Built, WEEKDAYS } from "~/model/cronParts";
import { text } from "~/texts/en";
import styles from "./ScheduleEditor.module.css";

const { build: words, builder } = text.scheduling;
const EVERY: Record<string, readonly number[]> = { minutes: [1, 2, 5, 10, 15, 20, 30], hours: [1, 2, 3, 4, 6, 8, 12] };

/** Writes a cron expression from a few choices. */
export function Builder({ onChange }: { onChange: (cron: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [built, setBuilt] = useState<Built>({ kind: "daily", every: 1, time: "09:00", weekdays: ["MON", "TUE", "WED", "THU", "FRI"], day: "1" });
  const change = (part: Partial<Built>) => {
    const next = { ...built, ...part };
    setBuilt(next);
    onChange(build(next));
  };
  if (!isOpen)
    return (
      <div>
        <Button size="small" icon="edit" aria-expanded={false} onClick={() => setOpen(true)}>
          {builder}
        </Button>
      </div>
    );
  return (
    <fieldset className={styles.builder}>
      <legend className="visually-hidden">{builder}</legend>
      <SelectField
        label={words.label}
        value={built.kind}
        onChange={(event) => change({ kind: event.target.value as Built["kind"], every: 1 })}
        options={(["minutes", "hours", "daily", "weekly", "monthly"] as const).map((value) => ({ value, label: words[value] }))}
      />
      {(built.kind === "minutes" || built.kind === "hours") && (
        <SelectField label={words.every} value={String(built.every)} onChange={(event) => change({ every: Number(event.target.value) })} options={(EVERY[built.kind] ?? []).map((count) => ({ value: String(count), label: text.count(count, built.kind === "minutes" ? "minute" : "hour") }))} />
      )}
      {built.kind === "monthly" && <SelectField label={words.day} value={built.day} onChange={(event) => change({ day: event.target.value })} options={Object.entries(words.days).map(([value, label]) => ({ value, label }))} />}
      {built.kind === "hours" ? (
        <TextField label={words.minuteOf} type="number" min={0} max={59} value={String(Number(built.time.split(":")[1]))} onChange={(event) => change({ time: `${built.time.split(":")[0]}:${String(Math.max(0, Math.min(59, Number(event.target.value)))).padStart(2, "0")}` })} />
      ) : (
        built.kind !== "minutes" && <TextField label={words.at} type="time" value={built.time} onChange={(event) => event.target.value && change({ time: event.target.value })} />
      )}
      {built.kind === "weekly" && (
        <div className={styles.weekdays} role="group" aria-label={words.weekdays}>
          {WEEKDAYS.map((name) => (
            <button key={name} type="button" aria-pressed={built.weekdays.includes(name)} onClick={() => change({ weekdays: built.weekdays.includes(name) ? built.weekdays.filter((one) => one !== name) : [...built.weekdays, name] })}>
              {words.names[name]}
            </button>
          ))}
        </div>
      )}
    </fieldset>
  );
}
