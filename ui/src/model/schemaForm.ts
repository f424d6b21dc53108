/** A form from the JSON Schema of a payload, and the payload from what somebody wrote into it. Values are kept as texts. */
export type FieldKind = "text" | "integer" | "number" | "boolean" | "choice" | "date" | "instant" | "list" | "json";

export interface FormField {
  name: string;
  kind: FieldKind;
  isRequired: boolean;
  /** Null is a value of it. */
  isNullable: boolean;
  description: string | null;
  /** What is taken without a value. */
  fallback: unknown;
  hasFallback: boolean;
  choices: readonly unknown[];
  least: number | null;
  most: number | null;
  /** Whether the bounds themselves are left out. */
  isOpen: { least: boolean; most: boolean };
  shortest: number;
  longest: number | null;
  pattern: RegExp | null;
  examples: readonly string[];
  /** The type in words of the schema, such as "integer or null". */
  type: string;
}

type Schema = Record<string, unknown>;

export interface FormTexts {
  missing: string;
  notAnInteger: string;
  notANumber: string;
  notJson: string;
  notAnInstant: string;
  tooShort: (least: number) => string;
  tooLong: (most: number) => string;
  tooSmall: (least: number, isOpen: boolean) => string;
  tooLarge: (most: number, isOpen: boolean) => string;
  pattern: string;
}

const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
const numberOr = <T>(value: unknown, other: T): number | T => (typeof value === "number" ? value : other);
// Those that people came for are first, wherever a schema lists them.
const FIRST = new Set(["command", "url", "path", "query"]);
const DEPTH_MAX = 10;

function resolved(schema: Schema, root: Schema, depth = 0): Schema {
  const reference = schema.$ref;
  if (typeof reference !== "string" || !reference.startsWith("#/") || depth > DEPTH_MAX) return schema;
  let found: unknown = root;
  for (const part of reference.slice(2).split("/")) found = isSchema(found) ? found[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  const { $ref: _, ...own } = schema;
  return isSchema(found) ? { ...resolved(found, root, depth + 1), ...own } : own;
}

/** The alternative beside null, if there is only one. */
function withoutNull(schema: Schema, root: Schema): { schema: Schema; isNullable: boolean } {
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(schema.type) && schema.type.includes("null")) {
    const others: unknown[] = schema.type.filter((type) => type !== "null");
    return { schema: { ...schema, type: others.length === 1 ? others[0] : others }, isNullable: true };
  }
  if (!Array.isArray(alternatives)) return { schema, isNullable: false };
  const others = alternatives.filter(isSchema).map((one) => resolved(one, root)).filter((one) => one.type !== "null");
  if (others.length === alternatives.length) return { schema, isNullable: false };
  const { anyOf: _, oneOf: __, ...own } = schema;
  return { schema: others.length === 1 ? { ...others[0], ...own } : { ...own, anyOf: others }, isNullable: true };
}

function kindOf(schema: Schema): FieldKind {
  if (Array.isArray(schema.enum) || schema.const !== undefined) return "choice";
  if (schema.type === "integer" || schema.type === "number" || schema.type === "boolean") return schema.type;
  if (schema.type !== "string") return "json";
  return schema.format === "date-time" ? "instant" : schema.format === "date" ? "date" : "text";
}

function typeWords(schema: Schema, root: Schema, isNullable: boolean): string {
  const alternatives = schema.anyOf ?? schema.oneOf;
  const told = Array.isArray(schema.enum)
    ? schema.enum.map((one) => JSON.stringify(one)).join(" | ")
    : schema.const !== undefined
      ? JSON.stringify(schema.const)
      : Array.isArray(alternatives)
        ? [...new Set(alternatives.filter(isSchema).map((one) => typeWords(resolved(one, root), root, false)))].join(" | ")
        : schema.type === "array" && isSchema(schema.items)
          ? `${typeWords(resolved(schema.items, root), root, false)}[]`
          : Array.isArray(schema.type)
            ? schema.type.join(" | ")
            : typeof schema.type === "string"
              ? typeof schema.format === "string"
                ? schema.format
                : schema.type
              : "any";
  return isNullable ? `${told} | null` : told;
}

function patternIn(schema: Schema): RegExp | null {
  if (typeof schema.pattern !== "string") return null;
  try {
    return new RegExp(schema.pattern, "u");
  } catch {
    return null;
  }
}

/** The fields of an object. Null: the schema does not say which fields there are. */
export function fieldsOf(schema: unknown): FormField[] | null {
  if (!isSchema(schema)) return null;
  const root = resolved(schema, schema);
  if (!isSchema(root.properties)) return root.additionalProperties === false ? [] : null;
  const required = new Set(Array.isArray(root.required) ? root.required : []);
  const fields = Object.entries(root.properties).flatMap(([name, given]): FormField[] => {
    if (!isSchema(given)) return [];
    const { schema: found, isNullable } = withoutNull(resolved(given, schema), schema);
    const isOpen = { least: typeof found.exclusiveMinimum === "number", most: typeof found.exclusiveMaximum === "number" };
    return [
      {
        name,
        kind: kindOf(found),
        isRequired: required.has(name),
        isNullable,
        description: typeof found.description === "string" ? found.description : null,
        fallback: found.default,
        hasFallback: "default" in found,
        choices: Array.isArray(found.enum) ? found.enum : found.const === undefined ? [] : [found.const],
        least: numberOr(isOpen.least ? found.exclusiveMinimum : found.minimum, null),
        most: numberOr(isOpen.most ? found.exclusiveMaximum : found.maximum, null),
        isOpen,
        shortest: numberOr(found.minLength, 0),
        longest: numberOr(found.maxLength, null),
        pattern: patternIn(found),
        examples: Array.isArray(found.examples) ? found.examples.filter((one) => typeof one === "string") : [],
        type: typeWords(found, schema, isNullable),
      },
    ];
  });
  const rank = (field: FormField) => (field.isRequired ? 0 : FIRST.has(field.name) ? 1 : 2);
  return fields.sort((one, other) => rank(one) - rank(other));
}

export type FormValues = Readonly<Record<string, string>>;

/** What a value is as text in the field: texts as they are, lists of words with commas, anything else as JSON. */
export function textOf(value: unknown, kind: FieldKind): string {
  if (value === undefined) return "";
  if (kind === "list" && Array.isArray(value)) return value.join(", ");
  return typeof value === "string" && kind !== "json" && kind !== "choice" ? value : JSON.stringify(value);
}

/** The texts of a form from a payload, such as one that was written as JSON. */
export function valuesOf(fields: readonly FormField[], payload: Readonly<Record<string, unknown>>): FormValues {
  return Object.fromEntries(fields.map((field) => [field.name, textOf(payload[field.name], field.kind)]));
}

const WHOLE = /^-?\d{1,15}$/;
const DECIMAL = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** One value, or what is wrong with it. Nothing at all leaves the field out. */
function valueIn(field: FormField, words: string, texts: FormTexts): { value?: unknown; error?: string } {
  const trimmed = words.trim();
  if (trimmed === "") return field.isRequired ? { error: texts.missing } : {};
  if (field.isNullable && trimmed === "null") return { value: null };
  switch (field.kind) {
    case "integer":
    case "number": {
      if (!(field.kind === "integer" ? WHOLE : DECIMAL).test(trimmed)) return { error: field.kind === "integer" ? texts.notAnInteger : texts.notANumber };
      const value = Number(trimmed);
      if (field.least !== null && (value < field.least || (field.isOpen.least && value === field.least))) return { error: texts.tooSmall(field.least, field.isOpen.least) };
      if (field.most !== null && (value > field.most || (field.isOpen.most && value === field.most))) return { error: texts.tooLarge(field.most, field.isOpen.most) };
      return { value };
    }
    case "list":
      return { value: trimmed.split(/[\s,]+/).filter(Boolean) };
    case "instant":
      return Number.isNaN(Date.parse(trimmed)) || !/^\d{4}-\d\d-\d\d[T ]/.test(trimmed) ? { error: texts.notAnInstant } : { value: trimmed };
    case "boolean":
    case "choice":
    case "json":
      try {
        return { value: JSON.parse(trimmed) as unknown };
      } catch {
        return { error: texts.notJson };
      }
    default:
      if (words.length < field.shortest) return { error: texts.tooShort(field.shortest) };
      if (field.longest !== null && words.length > field.longest) return { error: texts.tooLong(field.longest) };
      if (field.pattern && !field.pattern.test(words)) return { error: texts.pattern };
      return { value: words };
  }
}

export function payloadOf(fields: readonly FormField[], values: FormValues, texts: FormTexts): { payload: Record<string, unknown>; errors: Record<string, string> } {
  const payload: Record<string, unknown> = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const { value, error } = valueIn(field, values[field.name] ?? "", texts);
    if (error) errors[field.name] = error;
    else if (value !== undefined) payload[field.name] = value;
  }
  return { payload, errors };
}
