import { type InputHTMLAttributes, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from "react";
import { classes } from "./classes";
import { Icon } from "./Icon";
import styles from "./Field.module.css";

interface FieldProperties {
  label: ReactNode;
  hint?: ReactNode;
  /** Says what is wrong with the value, at the field. */
  error?: ReactNode;
  isOptional?: boolean;
}

interface Inner {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
}

/** A label, a control, a hint and an error that belong together. */
export function Field({ label, hint, error, isOptional, children }: FieldProperties & { children: (inner: Inner) => ReactNode }) {
  const id = useId();
  const told = [hint && `${id}h`, error && `${id}e`].filter(Boolean).join(" ");
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>
        {label}
        {isOptional && <span className={styles.optional}>optional</span>}
      </label>
      {children({ id, "aria-describedby": told || undefined, "aria-invalid": error ? true : undefined })}
      {error && (
        <p id={`${id}e`} className={styles.error}>
          <Icon name="warning" size={16} />
          <span>{error}</span>
        </p>
      )}
      {hint && (
        <p id={`${id}h`} className={styles.hint}>
          {hint}
        </p>
      )}
    </div>
  );
}

export function TextField({
  label,
  hint,
  error,
  isOptional,
  isMono,
  ...rest
}: FieldProperties & InputHTMLAttributes<HTMLInputElement> & { isMono?: boolean; ref?: Ref<HTMLInputElement> }) {
  return (
    <Field label={label} hint={hint} error={error} isOptional={isOptional}>
      {(inner) => <input type="text" autoComplete="off" spellCheck={false} data-autofocus={rest.autoFocus} {...rest} {...inner} className={classes(styles.control, isMono && "mono")} />}
    </Field>
  );
}

export function TextArea({
  label,
  hint,
  error,
  isOptional,
  isMono,
  ...rest
}: FieldProperties & TextareaHTMLAttributes<HTMLTextAreaElement> & { isMono?: boolean }) {
  return (
    <Field label={label} hint={hint} error={error} isOptional={isOptional}>
      {(inner) => <textarea rows={5} spellCheck={false} data-autofocus={rest.autoFocus} {...rest} {...inner} className={classes(styles.control, styles.area, isMono && "mono")} />}
    </Field>
  );
}

export function SelectField({
  label,
  hint,
  error,
  isOptional,
  options,
  ...rest
}: FieldProperties & SelectHTMLAttributes<HTMLSelectElement> & { options: { value: string; label: string }[] }) {
  return (
    <Field label={label} hint={hint} error={error} isOptional={isOptional}>
      {(inner) => <Select {...rest} {...inner} options={options} />}
    </Field>
  );
}

export function Select({ options, className, ...rest }: SelectHTMLAttributes<HTMLSelectElement> & { options: { value: string; label: string }[] }) {
  return (
    <span className={styles.select}>
      <select {...rest} className={classes(styles.control, className)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
      <Icon name="down" size={16} />
    </span>
  );
}

export function Checkbox({ label, hint, ...rest }: InputHTMLAttributes<HTMLInputElement> & { label: ReactNode; hint?: ReactNode }) {
  return (
    <label className={styles.check}>
      <input type="checkbox" {...rest} />
      <span>
        {label}
        {hint && <small>{hint}</small>}
      </span>
    </label>
  );
}
