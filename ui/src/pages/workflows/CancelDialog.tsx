import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { queryClient } from "~/api/queries";
import { AskDialog } from "~/components/Dialog";
import { Checkbox, TextField } from "~/components/Field";
import { toast } from "~/components/Toast";
import { text } from "~/texts/en";
import type { Workflow } from "./queries";

const { workflows: words } = text;

export function CancelDialog({ workflow, hasTeardown, onClose, onDone }: { workflow: Workflow; hasTeardown: boolean; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [isTidy, setTidy] = useState(true);
  const cancel = useMutation({
    mutationFn: () =>
      data(
        client.POST("/v1/workflows/{reference}/cancel", {
          params: { path: { reference: workflow.id } },
          body: { force: !isTidy, ...(reason.trim() ? { reason: reason.trim() } : {}) },
        }),
      ),
    onSuccess: () => {
      toast({ message: words.cancelled });
      void queryClient.invalidateQueries({ predicate: ({ queryKey }) => !queryKey.includes("graph") });
      onDone();
    },
  });
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={() => cancel.mutate()} title={words.cancelTitle} confirm={words.commands.cancel} isDangerous isBusy={cancel.isPending} error={cancel.error}>
      <p>{words.cancelHint}</p>
      {hasTeardown && <Checkbox label={words.teardown} hint={words.teardownHint} checked={isTidy} onChange={(event) => setTidy(event.target.checked)} />}
      <TextField label={words.reason} isOptional maxLength={500} value={reason} onChange={(event) => setReason(event.target.value)} />
    </AskDialog>
  );
}
