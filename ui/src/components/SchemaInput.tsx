import type { ReactNode } from "react";
import { type FormField, textOf } from "~/model/schemaForm";
import { SelectField, TextArea, TextField } from "./Field";

interface Properties {
  field: FormField;
  label: ReactNode;
  hint?: ReactNode;
  value: string;
  error?: string;
  onChange: (value: string) => void;
  /** What a choice is called. */
  nameOf?: (choice: unknown) => string;
  /** What leaving it out is called, in a choice. */
  left?: string;
  isLong?: boolean;
  /** Whether to say so; by default, whenever it can be left out. */
  isOptional?: boolean;
  /** A password or key, hidden unless it is the name of one. */
  isSecret?: boolean;
}

const quoted = (choice: unknown) => (typeof choice === "string" ? choice : JSON.stringify(choice));

/** The control for one field of a JSON Schema. */
export function SchemaInput({ field, label, hint, value, error, onChange, nameOf = quoted, left = "", isLong, isSecret, isOptional = !field.isRequired }: Properties) {
  const shared = { label, hint, error, isOptional };
  if (field.kind === "boolean" || field.kind === "choice") {
    const choices = field.kind === "boolean" ? [true, false] : field.choices;
    const options = choices.map((one) => ({ value: textOf(one, "choice"), label: nameOf(one) }));
    const isSet = field.hasFallback && left === "";
    return <SelectField {...shared} value={value} options={isSet ? options : [{ value: "", label: field.isRequired ? "" : left }, ...options]} onChange={(event) => onChange(event.target.value)} />;
  }
  if (field.kind === "json" || isLong) return <TextArea {...shared} isMono rows={2} value={value} onChange={(event) => onChange(event.target.value)} />;
  const isHidden = isSecret && !/^(env|file):/.test(value);
  return (
    <TextField
      {...shared}
      isMono={field.kind !== "text" || isSecret}
      inputMode={field.kind === "integer" ? "numeric" : field.kind === "number" ? "decimal" : undefined}
      type={field.kind === "date" ? "date" : isHidden ? "password" : "text"}
      autoComplete={isSecret ? "new-password" : "off"}
      value={value}
      onFocus={isSecret ? (event) => event.target.select() : undefined}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
