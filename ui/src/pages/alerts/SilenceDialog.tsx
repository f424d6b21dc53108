import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import type { AlertShown } from "~/api/schema";
import { AskDialog } from "~/components/Dialog";
import { SelectField, TextField } from "~/components/Field";
import { toast } from "~/components/Toast";
import { serverNow } from "~/model/clock";
import { words } from "~/texts/alerts";

const SECONDS: Record<string, number> = { "1h": 3_600, "8h": 28_800, "1d": 86_400, "7d": 604_800 };

/** Keeps the rule of an alert from sending messages for a time. */
export function SilenceDialog({ alert, onClose }: { alert: AlertShown; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [end, setEnd] = useState("1h");
  const send = useMutation({
    mutationFn: () => {
      const until = new Date(serverNow() + (SECONDS[end] ?? 0) * 1000).toISOString();
      return data(client.POST("/v1/alert-silences", { body: { rule: alert.rule, reason: reason.trim(), until } }));
    },
    onSuccess: () => {
      toast({ message: words.silenced(alert.rule) });
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => send.mutate()}
      title={words.silenceTitle(alert.rule)}
      confirm={words.silenceConfirm}
      isBusy={send.isPending}
      blocked={reason.trim() === "" ? words.reasonMissing : null}
      error={send.error ? asApiError(send.error) : null}
    >
      <p>{words.silenceHint}</p>
      <TextField label={words.reason} autoFocus maxLength={2000} value={reason} onChange={(event) => setReason(event.target.value)} />
      <SelectField label={words.until} value={end} onChange={(event) => setEnd(event.target.value)} options={Object.entries(words.ends).map(([value, label]) => ({ value, label }))} />
    </AskDialog>
  );
}
