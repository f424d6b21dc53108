import { useState } from "react";
import { AskDialog } from "~/components/Dialog";
import { TextArea } from "~/components/Field";
import { text } from "~/texts/en";
import type { WholeRun } from "./queries";

export function objectIn(words: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(words);
    return value && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

export function RerunDialog({ run, onClose, onRun }: { run: WholeRun; onClose: () => void; onRun: (payload: Record<string, unknown>) => Promise<unknown> }) {
  const [words, setWords] = useState(() => JSON.stringify(run.payload, null, 2));
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const payload = objectIn(words);
  const go = async () => {
    if (!payload) return;
    setBusy(true);
    try {
      await onRun(payload);
      onClose();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={() => void go()} title={text.run.rerunTitle} confirm={text.run.rerun} isBusy={isBusy} blocked={payload ? null : text.run.payloadInvalid} error={error}>
      <TextArea label={text.run.data.payload} hint={text.run.rerunHint} error={payload ? undefined : text.run.payloadInvalid} isMono rows={10} value={words} onChange={(event) => setWords(event.target.value)} />
    </AskDialog>
  );
}
