import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import type { AlertShown } from "~/api/schema";
import { AskDialog } from "~/components/Dialog";
import { TextField } from "~/components/Field";
import { toast } from "~/components/Toast";
import { words } from "~/texts/alerts";

/** Says that somebody takes care of an alert. */
export function AcknowledgeDialog({ alert, onClose }: { alert: AlertShown; onClose: () => void }) {
  const [note, setNote] = useState("");
  const send = useMutation({
    mutationFn: () => data(client.POST("/v1/alerts/{reference}/acknowledge", { params: { path: { reference: alert.id } }, body: note.trim() ? { note: note.trim() } : {} })),
    onSuccess: () => {
      toast({ message: words.acknowledgedToast });
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={() => send.mutate()} title={words.acknowledgeTitle} confirm={words.confirm} isBusy={send.isPending} error={send.error ? asApiError(send.error) : null}>
      <p>{words.acknowledgeHint}</p>
      <TextField label={words.note} hint={words.noteHint} isOptional autoFocus maxLength={2000} value={note} onChange={(event) => setNote(event.target.value)} />
    </AskDialog>
  );
}
