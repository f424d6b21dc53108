import { useState } from "react";
import { asApiError } from "~/api/problems";
import { AskDialog } from "~/components/Dialog";
import { SelectField, TextField } from "~/components/Field";
import { serverNow } from "~/model/clock";
import { browserZone, millis, zoneLabel } from "~/model/times";
import { words } from "~/texts/pauses";
import { nameOf, type PausedKind, type Stop } from "./queries";
import { usePauseActions } from "./usePauseActions";

const SECONDS: Record<string, number> = { "1h": 3_600, "8h": 28_800, "1d": 86_400, "7d": 604_800 };

interface Properties {
  stop: Stop | null;
  kinds: readonly PausedKind[];
  /** What is paused, where that is not a choice. */
  of?: { kind: PausedKind; name: string };
  onClose: () => void;
}

/** A new pause, or another reason and end for one. */
export function PauseForm({ stop, kinds, of, onClose }: Properties) {
  const { pause } = usePauseActions();
  const [kind, setKind] = useState<PausedKind>(of?.kind ?? (stop && stop.kind !== "circuit" ? stop.kind : (kinds[0] ?? "queue")));
  const [name, setName] = useState(of?.name ?? stop?.name ?? "");
  const [reason, setReason] = useState(stop?.reason ?? "");
  const [end, setEnd] = useState(stop?.until ? "keep" : "open");
  const [at, setAt] = useState("");
  const chosen = end === "at" ? millis(at) : end in SECONDS ? serverNow() + (SECONDS[end] ?? 0) * 1000 : null;
  const isPast = end === "at" && !(Number.isFinite(chosen) && (chosen ?? 0) > serverNow());
  const isNameless = kind !== "everything" && name.trim() === "";
  const problem = pause.error ? asApiError(pause.error) : null;
  const go = () => {
    const until = end === "keep" ? (stop?.until ?? undefined) : chosen === null ? undefined : new Date(chosen).toISOString();
    const wishes = { ...(reason.trim() ? { reason: reason.trim() } : {}), ...(until ? { until } : {}) };
    pause.mutate({ kind, name: kind === "everything" ? "" : name.trim(), wishes, before: stop }, { onSuccess: onClose });
  };
  const ends = [...(stop?.until ? ["keep"] : []), "open", "1h", "8h", "1d", "7d", "at"];
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={go}
      title={stop ? words.changeTitle(nameOf(stop)) : of ? words.pauseOf(of.name) : words.pauseTitle}
      confirm={stop ? words.save : words.confirm}
      isBusy={pause.isPending}
      blocked={isNameless ? words.nameMissing : isPast ? words.past : null}
      error={problem && !["name", "reason", "until"].includes(problem.field ?? "") ? problem : null}
    >
      {of && !stop && <p>{words.effects[of.kind]}</p>}
      {!stop && !of && (
        <>
          <SelectField label={words.what} hint={words.effects[kind]} value={kind} onChange={(event) => setKind(event.target.value as PausedKind)} options={kinds.map((value) => ({ value, label: words.kinds[value] }))} />
          {kind !== "everything" && <TextField label={words.name} autoFocus maxLength={200} value={name} error={problem?.field === "name" ? problem.detail : undefined} onChange={(event) => setName(event.target.value)} />}
        </>
      )}
      <TextField label={words.reason} hint={words.reasonHint} isOptional maxLength={1000} autoFocus={stop !== null || of !== undefined} value={reason} error={problem?.field === "reason" ? problem.detail : undefined} onChange={(event) => setReason(event.target.value)} />
      <SelectField label={words.until} value={end} error={problem?.field === "until" ? problem.detail : undefined} onChange={(event) => setEnd(event.target.value)} options={ends.map((value) => ({ value, label: words.ends[value] ?? value }))} />
      {end === "at" && <TextField label={words.at} type="datetime-local" hint={words.atHint(zoneLabel(browserZone(), serverNow()))} value={at} error={at !== "" && isPast ? words.past : undefined} onChange={(event) => setAt(event.target.value)} />}
    </AskDialog>
  );
}
