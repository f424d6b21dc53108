import { SchemaInput } from "~/components/SchemaInput";
import type { FormField, FormValues } from "~/model/schemaForm";
import { words } from "~/texts/alertForms";
import styles from "./AlertsPage.module.css";

interface Properties {
  /** The condition or kind of channel that the fields belong to. */
  kind: string;
  fields: readonly FormField[];
  values: FormValues;
  errors: Readonly<Record<string, string>>;
  onChange: (name: string, value: string) => void;
  secrets?: readonly string[];
  isLong?: boolean;
  /** Whether each field that may be empty says so. */
  isMarked?: boolean;
}

const CHOICES: Record<string, Record<string, string>> = { each: words.each, severity: words.severities, security: words.securities };

/** Fields side by side, as many as there is room for. */
export function FormFields({ kind, fields, values, errors, onChange, secrets = [], isLong, isMarked = true }: Properties) {
  if (fields.length === 0) return null;
  return (
    <div className={styles.fields}>
      {fields.map((field) => {
        const isSecret = secrets.includes(field.name);
        const value = values[field.name] ?? "";
        const own = words.hints[`${kind}.${field.name}`] ?? words.hints[field.name] ?? (field.examples.length > 0 ? words.such(field.examples) : undefined);
        const hint = isSecret ? [own, value === "***" ? words.storedHint : words.secretHint].filter(Boolean).join(" ") : own;
        return (
          <SchemaInput
            key={field.name}
            field={field}
            label={words.labels[`${kind}.${field.name}`] ?? words.labels[field.name] ?? field.name}
            hint={hint}
            value={value}
            error={errors[field.name]}
            isSecret={isSecret}
            isLong={isLong}
            isOptional={isMarked && !field.isRequired && (field.fallback ?? null) === null}
            nameOf={(choice) => CHOICES[field.name]?.[String(choice)] ?? String(choice)}
            onChange={(changed) => onChange(field.name, changed)}
          />
        );
      })}
    </div>
  );
}
