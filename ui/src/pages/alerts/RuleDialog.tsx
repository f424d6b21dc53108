import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { AlertRuleShown } from "~/api/schema";
import { useSession } from "~/api/session";
import { CopyCommand } from "~/components/Copy";
import { AskDialog } from "~/components/Dialog";
import { Checkbox, SelectField, TextField } from "~/components/Field";
import type { FormField, FormValues } from "~/model/schemaForm";
import { fieldErrors } from "~/texts/fieldErrors";
import { words as texts } from "~/texts/alerts";
import { words } from "~/texts/alertForms";
import { ruleCommands } from "./commands";
import { bodyOf, CONDITIONS, errorsAt, RULE_FIELDS, shownValues } from "./forms";
import { FormFields } from "./FormFields";
import { channelsQuery } from "./queries";
import { nameProblem } from "./names";
import { useRuleActions } from "./useRuleActions";
import styles from "./AlertsPage.module.css";

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$/;
const named = (...names: string[]): FormField[] => names.flatMap((name) => RULE_FIELDS.get(name) ?? []);
const FIRST = named("severity", "for");
const LAST = named("repeat", "description");
const FIRST_KIND = "run_failed";

/** Creates a rule, or changes one. What was typed for one condition is kept while another is looked at. */
export function RuleDialog({ rule: stored, taken, onClose }: { rule: AlertRuleShown | null; taken: readonly string[]; onClose: () => void }) {
  const { put } = useRuleActions();
  const channels = useQuery(channelsQuery()).data?.items ?? [];
  const isEverywhere = useSession()?.scope === "*";
  const before = stored?.rule;
  const [name, setName] = useState(stored?.name ?? "");
  const [kind, setKind] = useState<string>(before?.condition.kind ?? FIRST_KIND);
  const [typed, setTyped] = useState<Readonly<Record<string, FormValues>>>({});
  const [told, setTold] = useState<readonly string[]>(before?.channels ?? []);
  const [isOn, setOn] = useState(before?.enabled ?? true);
  const [isAsked, setAsked] = useState(false);
  const form = CONDITIONS.get(kind);
  const condition = form?.fields ?? [];
  const scope = form?.scope ?? [];
  const parts = {
    [kind]: shownValues(condition, before?.condition.kind === kind ? before.condition : {}),
    scope: shownValues(scope, (before?.scope ?? {}) as Record<string, unknown>),
    rule: shownValues([...FIRST, ...LAST], (before ?? {}) as Record<string, unknown>),
  };
  const valuesOf = (part: string): FormValues => ({ ...parts[part], ...typed[part] });
  const made = {
    condition: bodyOf(condition, valuesOf(kind), fieldErrors),
    scope: bodyOf(scope, valuesOf("scope"), fieldErrors),
    rule: bodyOf([...FIRST, ...LAST], valuesOf("rule"), fieldErrors),
  };
  const problem = nameProblem(name, NAME, stored ? [] : taken);
  const isWrong = problem !== null || Object.values(made).some((one) => Object.keys(one.errors).length > 0);
  const body = { condition: { kind, ...made.condition.body }, scope: made.scope.body, ...made.rule.body, channels: told.filter((one) => channels.some((channel) => channel.name === one)), enabled: isOn };
  const errors = {
    condition: { ...(isAsked ? made.condition.errors : {}), ...errorsAt(put.problem, "condition.") },
    scope: { ...(isAsked ? made.scope.errors : {}), ...errorsAt(put.problem, "scope.") },
    rule: { ...(isAsked ? made.rule.errors : {}), ...errorsAt(put.problem) },
  };
  const shown = [...condition.map((field) => `condition.${field.name}`), ...scope.map((field) => `scope.${field.name}`), ...RULE_FIELDS.keys(), "name", "condition.kind"];
  const isAtField = shown.some((field) => field === put.problem?.field?.split("[")[0]);
  const change = (part: string) => (field: string, value: string) => {
    put.reset();
    setTyped({ ...typed, [part]: { ...typed[part], [field]: value } });
  };
  const go = () => {
    setAsked(true);
    if (!isWrong) put.mutate({ name, body }, { onSuccess: onClose });
  };
  const kinds = [...CONDITIONS].filter(([one, { isInstallation }]) => !isInstallation || isEverywhere || one === before?.condition.kind);
  return (
    <AskDialog
      isOpen
      width="medium"
      onClose={onClose}
      onConfirm={go}
      title={stored ? words.changeRule(stored.name) : words.newRule}
      confirm={stored ? words.save : words.create}
      isBusy={put.isPending}
      blocked={isAsked && isWrong ? words.check : null}
      error={isAtField ? null : put.problem}
    >
      {!stored && <TextField label={words.name} hint={words.nameHint} isMono autoFocus maxLength={200} value={name} error={(isAsked || name !== "" ? problem : null) ?? errors.rule.name} onChange={(event) => setName(event.target.value.trim())} />}
      <SelectField
        label={words.condition}
        hint={words.conditionHints[kind]}
        value={kind}
        error={errors.condition.kind}
        options={kinds.map(([value]) => ({ value, label: texts.conditions[value] ?? value }))}
        onChange={(event) => {
          put.reset();
          setKind(event.target.value);
        }}
      />
      <FormFields kind={kind} fields={condition} values={valuesOf(kind)} errors={errors.condition} onChange={change(kind)} />
      {scope.length > 0 && (
        <fieldset className={styles.group}>
          <legend>{words.scope}</legend>
          <p className="quiet">{words.scopeHint}</p>
          <FormFields kind={kind} fields={scope} isMarked={false} values={valuesOf("scope")} errors={errors.scope} onChange={change("scope")} />
        </fieldset>
      )}
      <FormFields kind={kind} fields={FIRST} values={valuesOf("rule")} errors={errors.rule} onChange={change("rule")} />
      <fieldset className={styles.group}>
        <legend>{words.channels}</legend>
        {channels.map((channel) => (
          <Checkbox key={channel.name} label={channel.name} hint={texts.kinds[channel.channel.kind]} checked={told.includes(channel.name)} onChange={(event) => setTold(event.target.checked ? [...told, channel.name] : told.filter((one) => one !== channel.name))} />
        ))}
        {(channels.length === 0 || body.channels.length === 0) && <p className="quiet">{channels.length === 0 ? words.noChannels : words.channelsHint}</p>}
        {errors.rule.channels && <p className={styles.wrong}>{errors.rule.channels}</p>}
      </fieldset>
      <details className={styles.more} open={LAST.some((field) => errors.rule[field.name]) || undefined}>
        <summary>{words.more}</summary>
        <FormFields kind={kind} fields={LAST} values={valuesOf("rule")} errors={errors.rule} onChange={change("rule")} />
        <Checkbox label={words.labels.enabled} checked={isOn} onChange={(event) => setOn(event.target.checked)} />
      </details>
      {!isWrong && (
        <details className={styles.more}>
          <summary>{words.commandTitle}</summary>
          <CopyCommand commands={ruleCommands(name, body)} />
        </details>
      )}
    </AskDialog>
  );
}
