import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { AskDialog } from "~/components/Dialog";
import { TextArea } from "~/components/Field";
import { toast } from "~/components/Toast";
import { text } from "~/texts/en";

const { why } = text.run;

/** Lets a run that waits for a signal start, or refuses it. A durable function waits for signals by `name`. The note
 * travels with the signal. */
export function SignalDialog({ id, isApproval, name, onClose }: { id: string; isApproval: boolean; name?: string; onClose: () => void }) {
  const [note, setNote] = useState("");
  const send = useMutation({
    mutationFn: () =>
      data(
        client.POST("/v1/runs/{reference}/signal", {
          params: { path: { reference: id } },
          body: { approved: isApproval, ...(name ? { name } : {}), ...(note.trim() ? { message: note.trim() } : {}) } as never,
        }),
      ),
    onSuccess: () => {
      toast({ message: why.signalSent });
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => send.mutate()}
      title={name ? why.signalTitle(name) : isApproval ? why.approveTitle : why.refuseTitle}
      confirm={(name ? why.signalNamed(name) : isApproval ? why.approve : why.refuse).replace(" …", "")}
      isDangerous={!isApproval}
      isBusy={send.isPending}
      error={send.error}
    >
      <p>{name ? why.signalHint : isApproval ? why.approveHint : why.refuseHint}</p>
      <TextArea label={why.note} isOptional rows={3} maxLength={500} value={note} onChange={(event) => setNote(event.target.value)} />
    </AskDialog>
  );
}
