import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import { AskDialog } from "~/components/Dialog";
import { EndField, useEnd } from "~/components/EndField";
import { SelectField, TextField } from "~/components/Field";
import { toast } from "~/components/Toast";
import { words } from "~/texts/alerts";
import { errorsAt } from "./forms";
import { rulesQuery } from "./queries";

/** Keeps a rule, or all of them, from sending messages for a time. */
export function SilenceDialog({ rule: given, onClose }: { rule: string | null; onClose: () => void }) {
  const rules = useQuery(rulesQuery()).data?.items ?? [];
  const [rule, setRule] = useState(given ?? "");
  const [subject, setSubject] = useState("");
  const [reason, setReason] = useState("");
  const end = useEnd({});
  const send = useMutation({
    mutationFn: () => data(client.POST("/v1/alert-silences", { body: { reason: reason.trim(), until: end.until() ?? "", ...(rule ? { rule } : {}), ...(rule && subject.trim() ? { subject: subject.trim() } : {}) } })),
    onSuccess: (silence) => {
      toast({ message: words.silenced(words.silencedRule(silence.rule, silence.subject)) });
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  const problem = send.error ? asApiError(send.error) : null;
  const errors = errorsAt(problem);
  return (
    <AskDialog
      isOpen
      onClose={onClose}
      onConfirm={() => send.mutate()}
      title={given ? words.silenceTitle(given) : words.silenceAllTitle}
      confirm={words.silenceConfirm}
      isBusy={send.isPending}
      blocked={reason.trim() === "" ? words.reasonMissing : end.problem}
      error={["reason", "until", "rule", "subject"].some((field) => errors[field]) ? null : problem}
    >
      <p>{words.silenceHint}</p>
      {given === null && (
        <SelectField label={words.silenceWhat} value={rule} error={errors.rule} options={[{ value: "", label: words.silenceEverything }, ...rules.map(({ name }) => ({ value: name, label: name }))]} onChange={(event) => setRule(event.target.value)} />
      )}
      {rule !== "" && <TextField label={words.silenceSubject} hint={words.silenceSubjectHint} isOptional maxLength={200} value={subject} error={errors.subject} onChange={(event) => setSubject(event.target.value)} />}
      <TextField label={words.reason} autoFocus maxLength={2000} value={reason} error={errors.reason} onChange={(event) => setReason(event.target.value)} />
      <EndField end={end} error={errors.until} />
    </AskDialog>
  );
}
