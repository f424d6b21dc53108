import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import type { DeadGroupDetails } from "~/api/schema";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { AskDialog } from "~/components/Dialog";
import { TextArea } from "~/components/Field";
import { Time } from "~/components/Time";
import { words } from "~/texts/dead";
import { text } from "~/texts/en";
import { sendNote } from "./queries";
import styles from "./dead.module.css";

const NOTE_MAX = 2_000;

/** What people have found out about an error, for whoever looks next. */
export function NotePanel({ group }: { group: DeadGroupDetails }) {
  const mayOperate = useMay("operate");
  const [isOpen, setOpen] = useState(false);
  return (
    <section className={styles.note} aria-labelledby="note">
      <header className={styles.noteHead}>
        <h2 id="note">{words.note}</h2>
        {mayOperate && group.note && (
          <Button size="small" kind="quiet" icon="edit" onClick={() => setOpen(true)}>
            {words.noteEdit}
          </Button>
        )}
      </header>
      {group.note ? (
        <>
          <p className={styles.noteText}>
            <bdi>{group.note}</bdi>
          </p>
          <p className={styles.noteBy}>
            {group.noted_by && words.notedBy(group.noted_by)}
            {group.noted_at && <Time at={group.noted_at} isFocusable />}
          </p>
        </>
      ) : (
        <>
          <p className={styles.noteEmpty}>{words.noteEmpty}</p>
          {mayOperate && (
            <Button size="small" icon="edit" onClick={() => setOpen(true)}>
              {words.noteAdd}
            </Button>
          )}
        </>
      )}
      {isOpen && <NoteDialog group={group} onClose={() => setOpen(false)} />}
    </section>
  );
}

function NoteDialog({ group, onClose }: { group: DeadGroupDetails; onClose: () => void }) {
  const [note, setNote] = useState(group.note ?? "");
  const save = useMutation({
    mutationFn: () => sendNote(group.fingerprint, note.trim() || null),
    onSuccess: () => {
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  const problem = save.error ? asApiError(save.error) : null;
  return (
    <AskDialog isOpen onClose={onClose} onConfirm={() => save.mutate()} title={words.noteTitle} confirm={text.save} isBusy={save.isPending} error={problem && problem.field !== "note" ? problem : null}>
      <TextArea label={words.note} hint={words.noteHint} autoFocus rows={5} maxLength={NOTE_MAX} value={note} error={problem?.field === "note" ? problem.detail : undefined} onChange={(event) => setNote(event.target.value)} />
    </AskDialog>
  );
}
