import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import type { TaskDetails } from "~/api/schema";
import { CopyCommand } from "~/components/Copy";
import { AskDialog } from "~/components/Dialog";
import { TextArea, TextField } from "~/components/Field";
import { Segments } from "~/components/Segments";
import { toast } from "~/components/Toast";
import { randomKey } from "~/model/randomKey";
import { fieldsOf, type FormValues, payloadOf, valuesOf } from "~/model/schemaForm";
import { parseDuration } from "~/model/times";
import { fieldErrors } from "~/texts/fieldErrors";
import { words } from "~/texts/tasks";
import { curl, shellWord } from "../runs/commands";
import { objectIn } from "../runs/RerunDialog";
import { PayloadFields } from "./PayloadFields";
import styles from "./tasks.module.css";

const { form: told } = words;

/** Runs a task once, with a form that its parameters make, or with JSON. */
export function RunDialog({ task, onClose }: { task: TaskDetails; onClose: () => void }) {
  const navigate = useNavigate();
  const fields = useMemo(() => fieldsOf(task.schema), [task.schema]);
  const [mode, setMode] = useState(fields ? "fields" : "json");
  const [values, setValues] = useState<FormValues>({});
  const [json, setJson] = useState("{}");
  const [options, setOptions] = useState({ name: "", queue: "", delay: "" });
  const [isAsked, setAsked] = useState(false);
  const isJson = mode === "json" || fields === null;
  const filled = payloadOf(fields ?? [], values, fieldErrors);
  const written = objectIn(json);
  const payload = isJson ? written : filled.payload;
  const delay = options.delay.trim() === "" ? null : parseDuration(options.delay);
  const isDelayBad = options.delay.trim() !== "" && delay === null;
  const isWrong = isDelayBad || (isJson ? !written : Object.keys(filled.errors).length > 0);
  const body = {
    task: task.name,
    ...(payload && Object.keys(payload).length > 0 ? { payload } : {}),
    ...(options.name.trim() ? { name: options.name.trim() } : {}),
    ...(options.queue.trim() ? { queue: options.queue.trim() } : {}),
    ...(delay ? { delay_seconds: delay } : {}),
  };
  // The same job sent twice, because an answer got lost, runs once.
  const asked = JSON.stringify(body);
  const idempotencyKey = useMemo(() => (asked ? randomKey() : ""), [asked]);
  const run = useMutation({
    mutationFn: () => data(client.POST("/v1/jobs", { body: { ...body, idempotency_key: idempotencyKey } as never })),
    onSuccess: (made) => {
      const { id } = made as { id: string };
      toast({ message: (delay ? told.later : told.done)(body.name ?? task.name), action: { label: told.open, run: () => void navigate({ to: `/runs/${id}` as never }) } });
      void queryClient.invalidateQueries();
      onClose();
    },
  });
  const problem = run.error ? asApiError(run.error) : null;
  const named = problem?.field?.startsWith("payload.") ? problem.field.slice("payload.".length).split(/[.[]/)[0] : null;
  const isAtField = !isJson && fields?.some((field) => field.name === named);
  const marked = { ...(isAsked ? filled.errors : {}), ...(isAtField && named && problem ? { [named]: problem.detail } : {}) };
  const of = (name: string) => (problem?.field === name ? problem.detail : undefined);
  const isShown = isAtField || (isJson && problem?.field?.startsWith("payload")) || ["name", "queue", "delay_seconds"].includes(problem?.field ?? "");
  const change = (part: Partial<typeof options>) => {
    run.reset();
    setOptions({ ...options, ...part });
  };
  const go = () => {
    setAsked(true);
    if (!isWrong) run.mutate();
  };
  const switchTo = (next: string) => {
    run.reset();
    if (next === "json") setJson(JSON.stringify(filled.payload, null, 2));
    else if (written && fields) setValues(valuesOf(fields, written));
    setMode(next);
  };
  return (
    <AskDialog isOpen width="medium" onClose={onClose} onConfirm={go} title={told.title(task.name)} confirm={told.submit} isBusy={run.isPending} blocked={isAsked && isWrong ? told.check : null} error={isShown ? null : problem}>
      {fields && fields.length > 0 && (
        <div className={styles.mode}>
          <Segments
            label={told.mode}
            value={mode}
            options={[
              { value: "fields", label: told.fields },
              { value: "json", label: told.json },
            ]}
            onChange={switchTo}
          />
        </div>
      )}
      {isJson ? (
        <TextArea
          label={told.payload}
          hint={told.jsonHint}
          isMono
          rows={8}
          autoFocus
          value={json}
          error={written ? (problem?.field?.startsWith("payload") ? problem.detail : undefined) : told.jsonInvalid}
          onChange={(event) => {
            run.reset();
            setJson(event.target.value);
          }}
        />
      ) : (
        <PayloadFields
          fields={fields}
          values={values}
          errors={marked}
          onChange={(name, value) => {
            run.reset();
            setValues({ ...values, [name]: value });
          }}
        />
      )}
      <details className={styles.more} open={isDelayBad || of("name") || of("queue") ? true : undefined}>
        <summary>{told.options}</summary>
        <div className={styles.fields}>
          <TextField label={told.name} hint={told.nameHint} isOptional maxLength={200} value={options.name} error={of("name")} onChange={(event) => change({ name: event.target.value })} />
          <TextField label={told.queue} isOptional isMono placeholder={task.queue} maxLength={200} value={options.queue} error={of("queue")} onChange={(event) => change({ queue: event.target.value })} />
          <TextField label={told.delay} hint={told.delayHint} isOptional value={options.delay} error={isDelayBad ? told.delayInvalid : of("delay_seconds")} onChange={(event) => change({ delay: event.target.value })} />
        </div>
      </details>
      <details className={styles.more}>
        <summary>{words.commandTitle}</summary>
        <CopyCommand
          commands={[
            {
              label: "foliot",
              command: [
                `foliot submit ${shellWord(task.name)}`,
                body.payload && `--payload ${shellWord(JSON.stringify(body.payload))}`,
                body.name && `--name ${shellWord(body.name)}`,
                body.queue && `--queue ${shellWord(body.queue)}`,
                delay && `--delay ${delay}`,
              ]
                .filter(Boolean)
                .join(" "),
            },
            { label: "curl", command: curl("POST", "/v1/jobs", body) },
          ]}
        />
      </details>
    </AskDialog>
  );
}
