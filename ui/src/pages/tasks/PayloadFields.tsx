import { useState } from "react";
import { SchemaInput } from "~/components/SchemaInput";
import { type FormField, type FormValues, textOf } from "~/model/schemaForm";
import { words } from "~/texts/tasks";
import styles from "./tasks.module.css";

const OPTIONAL_SHOWN = 5;
const LONG_TEXT = 300;
const { form } = words;

interface Properties {
  fields: readonly FormField[];
  values: FormValues;
  errors: Readonly<Record<string, string>>;
  onChange: (name: string, value: string) => void;
}

/** A field for each parameter of a task. Many optional ones stay folded until somebody wants them. */
export function PayloadFields({ fields, values, errors, onChange }: Properties) {
  const [isOpen, setOpen] = useState(false);
  if (fields.length === 0) return <p className="quiet">{form.none}</p>;
  const required = fields.filter((field) => field.isRequired);
  const optional = fields.filter((field) => !field.isRequired);
  const firsts = required.length > 0 ? [] : optional.slice(0, 1);
  const isFolded = optional.length > OPTIONAL_SHOWN;
  const folded = isFolded ? optional.slice(firsts.length) : [];
  const shown = [...required, ...(isFolded ? firsts : optional)];
  const one = (field: FormField) => <Input key={field.name} field={field} value={values[field.name] ?? ""} error={errors[field.name]} onChange={(value) => onChange(field.name, value)} />;
  // An error inside opens it, so that it can be seen.
  const isNeeded = folded.some((field) => errors[field.name]);
  return (
    <>
      {shown.map(one)}
      {folded.length > 0 && (
        <details className={styles.more} open={isOpen || isNeeded} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{form.optional(folded.length)}</summary>
          <div className={styles.fields}>{folded.map(one)}</div>
        </details>
      )}
    </>
  );
}

function Input({ field, value, error, onChange }: { field: FormField; value: string; error?: string; onChange: (value: string) => void }) {
  const fallback = field.hasFallback && field.fallback !== null && field.fallback !== "" ? form.fallback(textOf(field.fallback, field.kind)) : "";
  const hint = [field.description, fallback].filter(Boolean).join(" ") || undefined;
  const isTyped = field.kind !== "text" && field.kind !== "choice";
  const label = (
    <>
      <span className="mono">{field.name}</span>
      {isTyped && <span className={styles.type}>{field.type}</span>}
    </>
  );
  const isLong = field.kind === "text" && (field.longest ?? 0) > LONG_TEXT && field.name === "command";
  return <SchemaInput field={field} label={label} hint={hint} value={value} error={error} isLong={isLong} left={field.isRequired ? "" : form.left} onChange={onChange} />;
}
