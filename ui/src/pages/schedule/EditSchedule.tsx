import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { client, data, tagged } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Dialog } from "~/components/Dialog";
import { ErrorNotice } from "~/components/ErrorNotice";
import { toast } from "~/components/Toast";
import { bodyOf, formOf, merged, type ScheduleForm, threeWay } from "~/model/scheduleForm";
import { text } from "~/texts/en";
import { type Job, scheduleOf } from "../jobs/queries";
import { curl } from "../runs/commands";
import { ScheduleFields, SHOWN_FIELDS } from "./ScheduleFields";
import { Simulation } from "./Simulation";
import { usePreview } from "./usePreview";
import styles from "./ScheduleEditor.module.css";

const { scheduling: words } = text;

interface Version {
  form: ScheduleForm;
  etag: string | null;
}

/** Changes the schedule of a job that nobody else has changed meanwhile; otherwise it shows all three versions. */
export function EditSchedule({ job, etag, onDone }: { job: Job; etag: string | null; onDone: () => void }) {
  const [base, setBase] = useState<Version>(() => ({ form: formOf(scheduleOf(job), job.runs_left), etag }));
  const [form, setForm] = useState(base.form);
  const [theirs, setTheirs] = useState<Version | null>(null);
  const path = `/v1/jobs/${encodeURIComponent(job.name)}`;
  const body = bodyOf(form, base.form);
  const isChanged = Object.keys(body).length > 0;
  const { preview, isOld, problem } = usePreview({ job: job.id, ...body });
  const save = useMutation({
    mutationFn: () => data(client.PATCH("/v1/jobs/{reference}", { params: { path: { reference: job.id }, header: (base.etag ? { "If-Match": base.etag } : {}) as never }, body: body as never })),
    onSuccess: () => {
      toast({ message: words.saved });
      void queryClient.invalidateQueries();
      onDone();
    },
    onError: async (error) => {
      if (asApiError(error).status !== 412) return;
      const found = await tagged(client.GET("/v1/jobs/{reference}", { params: { path: { reference: job.id } } }));
      const now = found.data as Job;
      setTheirs({ form: formOf(scheduleOf(now), now.runs_left), etag: found.etag });
    },
  });
  const refused = save.error && asApiError(save.error).status !== 412 ? asApiError(save.error) : null;
  const shown = problem ?? refused;
  const settle = (next: ScheduleForm) => {
    if (theirs) setBase(theirs);
    setForm(next);
    setTheirs(null);
    save.reset();
  };
  return (
    <div className={styles.columns}>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (isChanged && !problem) save.mutate();
        }}
      >
        <ScheduleFields
          form={form}
          problem={shown}
          onChange={(change) => {
            save.reset();
            setForm((before) => ({ ...before, ...change }));
          }}
        />
        {shown && !SHOWN_FIELDS.has(shown.field ?? "") && <ErrorNotice error={shown} />}
        <div className={styles.actions}>
          <Button kind="primary" type="submit" isBusy={save.isPending} blocked={problem ? words.notYet : isChanged ? null : words.nothingChanged}>
            {words.save}
          </Button>
          <Button onClick={onDone}>{text.cancel}</Button>
        </div>
        {isChanged && <CopyCommand commands={[{ label: "curl", command: curl("PATCH", path, body) }]} />}
      </form>
      <aside className={styles.simulation} aria-label={words.simulation.title}>
        <h2>{words.simulation.title}</h2>
        <Simulation preview={preview} isOld={isOld} isWrong={problem !== null} overlap={form.overlap} />
      </aside>
      <Dialog
        isOpen={theirs !== null}
        onClose={() => setTheirs(null)}
        title={words.conflict.title}
        width="large"
        footer={
          theirs && (
            <>
              <Button onClick={() => settle(theirs.form)}>{words.conflict.drop}</Button>
              <Button kind="primary" onClick={() => settle(merged(base.form, theirs.form, form))}>
                {words.conflict.merge}
              </Button>
            </>
          )
        }
      >
        {theirs && <ThreeVersions base={base.form} theirs={theirs.form} mine={form} />}
      </Dialog>
    </div>
  );
}

function ThreeVersions({ base, theirs, mine }: { base: ScheduleForm; theirs: ScheduleForm; mine: ScheduleForm }) {
  const { conflict } = words;
  const cell = (value: string) => (value === "" ? <span className="quiet">{conflict.empty}</span> : <code>{value}</code>);
  return (
    <>
      <p className={styles.conflictText}>{conflict.text}</p>
      <div className={styles.scroll} tabIndex={0} role="region" aria-label={conflict.title}>
        <table className={styles.versions}>
          <thead>
            <tr>
              {[conflict.field, conflict.base, conflict.theirs, conflict.mine].map((head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {threeWay(base, theirs, mine).map((one) => (
              <tr key={one.name} data-conflict={one.isConflict || undefined}>
                <th scope="row">{conflict.names[one.name]}</th>
                <td>{cell(one.base)}</td>
                <td data-changed={one.theirs !== one.base || undefined}>{cell(one.theirs)}</td>
                <td data-changed={one.mine !== one.base || undefined}>{cell(one.mine)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
