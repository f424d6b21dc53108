import { useState } from "react";
import { serverNow } from "~/model/clock";
import { browserZone, millis, zoneLabel } from "~/model/times";
import { words } from "~/texts/ends";
import { SelectField, TextField } from "./Field";

type Choice = keyof typeof words.ends;

const SECONDS: Partial<Record<Choice, number>> = { "1h": 3_600, "8h": 28_800, "1d": 86_400, "7d": 604_800 };

export interface End {
  choice: Choice;
  choices: readonly Choice[];
  at: string;
  change: (part: { choice?: Choice; at?: string }) => void;
  /** Why it can't be sent. */
  problem: string | null;
  /** The end in ISO 8601 when it is sent; undefined for none. */
  until: () => string | undefined;
}

/** When a pause or silence ends. `kept` is the end that it has already; `isOpen` allows none. */
export function useEnd({ kept = null, isOpen = false }: { kept?: string | null; isOpen?: boolean }): End {
  const choices: Choice[] = [...(kept ? (["keep"] as const) : []), ...(isOpen ? (["open"] as const) : []), "1h", "8h", "1d", "7d", "at"];
  const [choice, setChoice] = useState<Choice>(choices[0] ?? "1h");
  const [at, setAt] = useState("");
  const chosen = choice === "at" ? millis(at) : serverNow() + (SECONDS[choice] ?? 0) * 1000;
  return {
    choice,
    choices,
    at,
    change: (part) => {
      if (part.choice) setChoice(part.choice);
      if (part.at !== undefined) setAt(part.at);
    },
    problem: choice === "at" && !(chosen > serverNow()) ? words.past : null,
    until: () => (choice === "keep" ? (kept ?? undefined) : choice === "open" ? undefined : new Date(chosen).toISOString()),
  };
}

export function EndField({ end, error }: { end: End; error?: string }) {
  return (
    <>
      <SelectField label={words.until} value={end.choice} error={error} onChange={(event) => end.change({ choice: event.target.value as Choice })} options={end.choices.map((value) => ({ value, label: words.ends[value] }))} />
      {end.choice === "at" && (
        <TextField label={words.at} type="datetime-local" hint={words.atHint(zoneLabel(browserZone(), serverNow()))} value={end.at} error={end.at !== "" ? end.problem : undefined} onChange={(event) => end.change({ at: event.target.value })} />
      )}
    </>
  );
}
