import { useState } from "react";
import { AskDialog } from "~/components/Dialog";
import { SelectField, TextField } from "~/components/Field";
import { serverNow } from "~/model/clock";
import { text } from "~/texts/en";
import type { Job } from "./queries";
import { useJobActions } from "./useJobActions";

const ENDS: [string, number | null][] = [
  ["open", null],
  ["1h", 3_600],
  ["8h", 28_800],
  ["1d", 86_400],
  ["7d", 604_800],
];

export function PauseDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { pause } = useJobActions();
  const [reason, setReason] = useState("");
  const [end, setEnd] = useState("open");
  const seconds = ENDS.find(([name]) => name === end)?.[1] ?? null;
  const go = () => {
    const until = seconds === null ? undefined : new Date(serverNow() + seconds * 1000).toISOString();
    pause.mutate({ job, wishes: { reason: reason.trim() || undefined, until } }, { onSuccess: onClose });
  };
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={go} title={text.jobs.pauseTitle(job.name)} confirm={text.jobs.pause} isBusy={pause.isPending} error={pause.error}>
      <p>{text.jobs.pauseHint}</p>
      <TextField label={text.jobs.reason} hint={text.jobs.reasonHint} isOptional maxLength={500} autoFocus value={reason} onChange={(event) => setReason(event.target.value)} />
      <SelectField label={text.jobs.until} value={end} onChange={(event) => setEnd(event.target.value)} options={ENDS.map(([value]) => ({ value, label: text.jobs.pauseEnds[value] ?? value }))} />
    </AskDialog>
  );
}
