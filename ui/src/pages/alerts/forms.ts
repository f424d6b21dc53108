/** The forms of rules and channels. Their fields come from the API's document, so that none can be missing. */
import { type FormField, type FormTexts, type FormValues, fieldsOf, payloadOf, textOf } from "~/model/schemaForm";
import schemas from "./schemas.json";

type Values = Readonly<Record<string, unknown>>;

export interface ConditionForm {
  fields: readonly FormField[];
  scope: readonly FormField[];
  /** Only a token for all namespaces may set it up. */
  isInstallation: boolean;
}

export interface ChannelForm {
  fields: readonly FormField[];
  /** The texts of its messages. */
  texts: readonly FormField[];
  secrets: readonly string[];
}

// The server knows better than a pattern which addresses it takes.
const fieldsIn = (schema: unknown): FormField[] =>
  (fieldsOf(schema) ?? []).map((field) => ({ ...field, kind: field.type.endsWith("[]") ? "list" : field.kind, pattern: field.type.startsWith("uri") ? null : field.pattern }));

const TEXTS = new Set(["title", "body"]);
const scope = fieldsIn(schemas.scope);

export const RULE_FIELDS = new Map(fieldsIn(schemas.rule).map((field) => [field.name, field]));
export const CONDITIONS = new Map<string, ConditionForm>(
  Object.entries(schemas.conditions).map(([kind, one]) => [
    kind,
    { fields: fieldsIn(one.schema), scope: scope.filter((field) => one.scope.some((name) => name === field.name)), isInstallation: one.isInstallation },
  ]),
);
export const CHANNELS = new Map<string, ChannelForm>(
  Object.entries(schemas.channels).map(([kind, one]) => {
    const fields = fieldsIn(one.schema);
    return [kind, { fields: fields.filter((field) => !TEXTS.has(field.name)), texts: fields.filter((field) => TEXTS.has(field.name)), secrets: one.secrets }];
  }),
);

/** What a form shows at first: the stored values, or what the server takes without any. */
export function shownValues(fields: readonly FormField[], stored: Values): FormValues {
  return Object.fromEntries(
    fields.map((field) => {
      const value = field.name in stored ? stored[field.name] : field.fallback;
      return [field.name, value === null ? "" : textOf(value, field.kind)];
    }),
  );
}

/** What is sent. An empty field is null where that is a value: it turns off what would be on without it. */
export function bodyOf(fields: readonly FormField[], values: FormValues, texts: FormTexts): { body: Record<string, unknown>; errors: Record<string, string> } {
  const trimmed = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim()]));
  const { payload, errors } = payloadOf(fields, trimmed, texts);
  for (const field of fields) if (field.isNullable && field.fallback !== null && !trimmed[field.name]) payload[field.name] = null;
  return { body: payload, errors };
}

/** The parts of `prefix.name` errors that belong to fields, without the name that the server puts in front. */
export function errorsAt(problem: { field: string | null; detail: string } | null, prefix = ""): Record<string, string> {
  if (!problem?.field?.startsWith(prefix)) return {};
  const [name = ""] = problem.field.slice(prefix.length).split(/[.[]/);
  const told = problem.detail.startsWith(`${problem.field}: `) ? problem.detail.slice(problem.field.length + 2) : problem.detail;
  return { [name]: told };
}
