import { useState } from "react";
import { AskDialog } from "~/components/Dialog";
import { EndField, useEnd } from "~/components/EndField";
import { TextField } from "~/components/Field";
import { text } from "~/texts/en";
import type { Job } from "./queries";
import { useJobActions } from "./useJobActions";

export function PauseDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { pause } = useJobActions();
  const [reason, setReason] = useState("");
  const end = useEnd({ isOpen: true });
  const go = () => pause.mutate({ job, wishes: { reason: reason.trim() || undefined, until: end.until() } }, { onSuccess: onClose });
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={go} title={text.jobs.pauseTitle(job.name)} confirm={text.jobs.pause} isBusy={pause.isPending} blocked={end.problem} error={pause.error}>
      <p>{text.jobs.pauseHint}</p>
      <TextField label={text.jobs.reason} hint={text.jobs.reasonHint} isOptional maxLength={500} autoFocus value={reason} onChange={(event) => setReason(event.target.value)} />
      <EndField end={end} />
    </AskDialog>
  );
}
