import { useState } from "react";
import { asApiError } from "~/api/problems";
import { AskDialog } from "~/components/Dialog";
import { EndField, useEnd } from "~/components/EndField";
import { SelectField, TextField } from "~/components/Field";
import { words } from "~/texts/pauses";
import { nameOf, type PausedKind, type Stop } from "./queries";
import { usePauseActions } from "./usePauseActions";

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
  const end = useEnd({ kept: stop?.until, isOpen: true });
  const isNameless = kind !== "everything" && name.trim() === "";
  const problem = pause.error ? asApiError(pause.error) : null;
  const go = () => {
    const until = end.until();
    const wishes = { ...(reason.trim() ? { reason: reason.trim() } : {}), ...(until ? { until } : {}) };
    pause.mutate({ kind, name: kind === "everything" ? "" : name.trim(), wishes, before: stop }, { onSuccess: onClose });
  };
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={go}
      title={stop ? words.changeTitle(nameOf(stop)) : of ? words.pauseOf(of.name) : words.pauseTitle}
      confirm={stop ? words.save : words.confirm}
      isBusy={pause.isPending}
      blocked={isNameless ? words.nameMissing : end.problem}
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
      <EndField end={end} error={problem?.field === "until" ? problem.detail : undefined} />
    </AskDialog>
  );
}
