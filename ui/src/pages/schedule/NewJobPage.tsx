import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { client, data } from "~/api/client";
import { asApiError } from "~/api/problems";
import { queryClient } from "~/api/queries";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { Unavailable } from "~/components/EmptyState";
import { ErrorNotice } from "~/components/ErrorNotice";
import { TextArea, TextField } from "~/components/Field";
import { Icon } from "~/components/Icon";
import { PageHeader } from "~/components/PageHeader";
import { Segments } from "~/components/Segments";
import { toast } from "~/components/Toast";
import { ApiError } from "~/api/problems";
import { bodyOf, NEW_SCHEDULE } from "~/model/scheduleForm";
import { browserZone } from "~/model/times";
import { text } from "~/texts/en";
import { curl, shellWord } from "../runs/commands";
import { ScheduleFields, SHOWN_FIELDS } from "./ScheduleFields";
import { Simulation } from "./Simulation";
import { usePreview } from "./usePreview";
import styles from "./ScheduleEditor.module.css";

const { scheduling: words } = text;
const OWN_FIELDS = new Set(["name", "command", "task", "payload"]);
const FLAGS: Record<string, string> = { jitter_seconds: "jitter" };

/** A new recurring job: what it runs, and when, with what that will do beside it. */
export function NewJobPage() {
  const navigate = useNavigate();
  const maySubmit = useMay("submit");
  const [what, setWhat] = useState({ kind: "command", name: "", command: "echo hello", task: "", payload: "{}" });
  const [form, setForm] = useState(() => ({ ...NEW_SCHEDULE, timezone: browserZone() }));
  const [payloadError, setPayloadError] = useState<string | null>(null);
  const schedule = bodyOf(form);
  const { preview, isOld, problem } = usePreview(schedule);
  const payload = what.kind === "task" ? parsed(what.payload) : null;
  const body = {
    ...(what.name.trim() ? { name: what.name.trim() } : {}),
    ...(what.kind === "command" ? { command: what.command } : { task: what.task.trim(), ...(payload && Object.keys(payload).length > 0 ? { payload } : {}) }),
    ...schedule,
  };
  const create = useMutation({
    mutationFn: () => data(client.POST("/v1/jobs", { body: body as never })),
    onSuccess: (made) => {
      const name = (made as { name?: string; id: string }).name ?? (made as { id: string }).id;
      toast({ message: words.created(name) });
      void queryClient.invalidateQueries();
      void navigate({ to: `/jobs/${encodeURIComponent(name)}` as never });
    },
  });
  if (!maySubmit) return <Unavailable error={new ApiError(403, "", "forbidden")} what={text.jobs.one} />;
  const refused = create.error ? asApiError(create.error) : null;
  const shown = problem ?? refused;
  const of = (name: string) => (refused?.field === name ? refused.detail.replace(new RegExp(`^${name}: `), "") : undefined);
  const change = (part: Partial<typeof what>) => {
    create.reset();
    setPayloadError(null);
    setWhat((before) => ({ ...before, ...part }));
  };
  const flags = Object.entries(schedule).flatMap(([name, value]) => (Array.isArray(value) ? value.map((one) => [name, one]) : [[name, value]]) as [string, unknown][]);
  const command = [
    "foliot submit",
    ...(what.kind === "command" ? ["--command", shellWord(what.command)] : [shellWord(what.task || "TASK"), ...(payload && Object.keys(payload).length > 0 ? ["--payload", shellWord(JSON.stringify(payload))] : [])]),
    ...(body.name ? ["--name", shellWord(body.name)] : []),
    ...flags.flatMap(([name, value]) => [`--${(FLAGS[name] ?? name).replaceAll("_", "-")}`, shellWord(name === "jitter_seconds" ? `${String(value)}s` : String(value))]),
  ].join(" ");
  return (
    <>
      <PageHeader
        title={words.newTitle}
        above={
          <nav aria-label={text.jobs.title}>
            <Link to={"/jobs" as never}>{text.jobs.title}</Link>
            <Icon name="chevron" size={12} />
            <span>{words.newTitle}</span>
          </nav>
        }
      />
      <div className={styles.columns}>
        <form
          className={styles.form}
          onSubmit={(event) => {
            event.preventDefault();
            if (what.kind === "task" && !payload) setPayloadError(words.notAnObject);
            else if (!problem) create.mutate();
          }}
        >
          <section className={styles.section}>
            <div className={styles.head}>
              <h2>{words.what}</h2>
              <Segments label={words.runs} value={what.kind} onChange={(kind) => change({ kind })} options={(["command", "task"] as const).map((value) => ({ value, label: words.kinds[value] ?? value }))} />
            </div>
            <TextField label={words.name} isOptional hint={words.nameHint} value={what.name} error={of("name")} onChange={(event) => change({ name: event.target.value })} />
            {what.kind === "command" ? (
              <TextArea label={words.command} hint={words.commandHint} isMono rows={2} value={what.command} error={of("command")} onChange={(event) => change({ command: event.target.value })} />
            ) : (
              <>
                <TextField label={words.task} hint={words.taskHint} isMono value={what.task} error={of("task")} onChange={(event) => change({ task: event.target.value })} />
                <TextArea label={words.payload} hint={words.payloadHint} isMono rows={3} value={what.payload} error={payloadError ?? of("payload")} onChange={(event) => change({ payload: event.target.value })} />
              </>
            )}
          </section>
          <ScheduleFields
            form={form}
            problem={shown}
            onChange={(part) => {
              create.reset();
              setForm((before) => ({ ...before, ...part }));
            }}
          />
          {shown && !SHOWN_FIELDS.has(shown.field ?? "") && !OWN_FIELDS.has(shown.field ?? "") && <ErrorNotice error={shown} />}
          <div className={styles.actions}>
            <Button kind="primary" type="submit" isBusy={create.isPending} blocked={problem ? words.notYet : null}>
              {words.create}
            </Button>
          </div>
          <CopyCommand
            commands={[
              { label: "foliot", command },
              { label: "curl", command: curl("POST", "/v1/jobs", body) },
            ]}
          />
        </form>
        <aside className={styles.simulation} aria-label={words.simulation.title}>
          <h2>{words.simulation.title}</h2>
          <Simulation preview={preview} isOld={isOld} isWrong={problem !== null} overlap={form.overlap} />
        </aside>
      </div>
    </>
  );
}

function parsed(payload: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(payload.trim() || "{}");
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
