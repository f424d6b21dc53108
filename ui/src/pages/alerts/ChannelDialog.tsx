import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { client, data, tagged } from "~/api/client";
import { asApiError } from "~/api/problems";
import { key, queryClient } from "~/api/queries";
import type { AlertChannelShown } from "~/api/schema";
import { CopyCommand } from "~/components/Copy";
import { AskDialog } from "~/components/Dialog";
import { SelectField, TextField } from "~/components/Field";
import { Skeleton } from "~/components/Skeleton";
import { toast } from "~/components/Toast";
import type { FormValues } from "~/model/schemaForm";
import { words as texts } from "~/texts/alerts";
import { words } from "~/texts/alertForms";
import { fieldErrors } from "~/texts/fieldErrors";
import { channelCommands } from "./commands";
import { bodyOf, CHANNELS, errorsAt, shownValues } from "./forms";
import { FormFields } from "./FormFields";
import { nameProblem } from "./names";
import styles from "./AlertsPage.module.css";

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;
const FIRST_KIND = "email";

interface Properties {
  name: string | null;
  taken: readonly string[];
  onClose: () => void;
  onTest: (name: string) => void;
}

/** Reads the channel as it is now, so that a change by somebody else meanwhile is noticed. */
export function ChannelDialog({ name, ...rest }: Properties) {
  const found = useQuery({
    queryKey: key("alert-channel", name),
    queryFn: () => tagged(client.GET("/v1/alert-channels/{name}", { params: { path: { name: name ?? "" } } })),
    enabled: name !== null,
    staleTime: Infinity,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  if (name === null) return <ChannelForm {...rest} stored={null} etag={null} onOvertaken={() => undefined} />;
  if (found.data) return <ChannelForm {...rest} stored={found.data.data} etag={found.data.etag} onOvertaken={() => void found.refetch()} />;
  return (
    <AskDialog isOpen width="medium" onClose={rest.onClose} onConfirm={() => void found.refetch()} title={words.changeChannel(name)} confirm={words.save} isBusy={found.isPending} error={found.error}>
      <Skeleton lines={5} />
    </AskDialog>
  );
}

function ChannelForm({ stored, etag, taken, onClose, onTest, onOvertaken }: Omit<Properties, "name"> & { stored: AlertChannelShown | null; etag: string | null; onOvertaken: () => void }) {
  const [before] = useState(stored?.channel);
  const [name, setName] = useState(stored?.name ?? "");
  const [kind, setKind] = useState<string>(before?.kind ?? FIRST_KIND);
  const [typed, setTyped] = useState<Readonly<Record<string, FormValues>>>({});
  const [isAsked, setAsked] = useState(false);
  const form = CHANNELS.get(kind);
  const all = [...(form?.fields ?? []), ...(form?.texts ?? [])];
  const values = { ...shownValues(all, before?.kind === kind ? before : {}), ...typed[kind] };
  const made = bodyOf(all, values, fieldErrors);
  const body = { kind, ...made.body };
  const wrongName = nameProblem(name, NAME, stored ? [] : taken);
  const isWrong = wrongName !== null || Object.keys(made.errors).length > 0;
  const save = useMutation({
    mutationFn: () =>
      data(client.PUT("/v1/alert-channels/{name}", { params: { path: { name }, header: etag ? { "If-Match": etag } : { "If-None-Match": "*" } }, body: body as AlertChannelShown["channel"] })),
    onSuccess: () => {
      toast({ message: words.saved(name), action: { label: texts.sendTest, run: () => onTest(name) } });
      void queryClient.invalidateQueries();
      onClose();
    },
    onError: (error) => {
      if (stored && asApiError(error).status === 412) onOvertaken();
    },
  });
  const problem = save.error ? asApiError(save.error) : null;
  const isOvertaken = problem?.status === 412;
  const errors = { ...(isAsked ? made.errors : {}), ...errorsAt(problem) };
  const isAtField = Object.keys(errorsAt(problem)).some((field) => field === "name" || all.some((one) => one.name === field));
  const change = (field: string, value: string) => {
    save.reset();
    setTyped({ ...typed, [kind]: { ...typed[kind], [field]: value } });
  };
  const go = () => {
    setAsked(true);
    if (!isWrong) save.mutate();
  };
  return (
    <AskDialog
      isOpen
      width="medium"
      onClose={onClose}
      onConfirm={go}
      title={stored ? words.changeChannel(stored.name) : words.newChannel}
      confirm={stored ? words.save : words.create}
      isBusy={save.isPending}
      blocked={isAsked && isWrong ? words.check : null}
      error={isAtField || (stored && isOvertaken) ? null : problem}
    >
      {stored && isOvertaken && (
        <p role="alert" className={styles.notice}>
          <strong>{words.changedMeanwhile}</strong> {words.changedHint}
        </p>
      )}
      {!stored && <TextField label={words.name} hint={words.channelNameHint} isMono autoFocus maxLength={100} value={name} error={(isAsked || name !== "" ? wrongName : null) ?? errors.name} onChange={(event) => setName(event.target.value.trim())} />}
      <SelectField
        label={words.kind}
        value={kind}
        options={[...CHANNELS.keys()].map((value) => ({ value, label: texts.kinds[value] ?? value }))}
        onChange={(event) => {
          save.reset();
          setKind(event.target.value);
        }}
      />
      <FormFields kind={kind} fields={form?.fields ?? []} values={values} errors={errors} onChange={change} secrets={form?.secrets} />
      <details className={styles.more} open={form?.texts.some((field) => errors[field.name]) || undefined}>
        <summary>{words.texts}</summary>
        <p className="quiet">{words.textsHint}</p>
        <FormFields kind={kind} fields={form?.texts ?? []} values={values} errors={errors} onChange={change} isLong isMarked={false} />
      </details>
      {!isWrong && (
        <details className={styles.more}>
          <summary>{words.commandTitle}</summary>
          <CopyCommand commands={channelCommands(name, body, form?.secrets ?? [])} />
        </details>
      )}
    </AskDialog>
  );
}
