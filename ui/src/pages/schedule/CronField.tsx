import { type ReactNode, useId } from "react";
import { classes } from "~/components/classes";
import { Icon } from "~/components/Icon";
import { cronParts } from "~/model/cronParts";
import { text } from "~/texts/en";
import styles from "./CronField.module.css";

const { scheduling: words } = text;

interface Properties {
  value: string;
  onChange: (value: string) => void;
  error?: ReactNode;
  /** The part that is wrong. */
  place?: readonly [number, number] | null;
}

/** A cron expression whose parts are coloured and named; the part that is wrong is underlined. Several stand on lines. */
export function CronField({ value, onChange, error, place }: Properties) {
  const id = useId();
  const lines = value.split("\n");
  const isOne = lines.length === 1;
  const named = cronParts(lines[0] ?? "").filter((part) => part.field);
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>
        {words.cron}
      </label>
      <div className={classes(styles.box, error ? styles.wrong : undefined)}>
        <pre className={styles.painted} aria-hidden="true">
          {lines.map((line, index) => (
            <span key={index}>
              {cronParts(line).flatMap((part) => {
                const [from, to] = isOne && place && error ? place : [0, 0];
                return pieces(part.text, part.start, from, to).map(([piece, isWrong], at) => (
                  <span key={`${part.start} ${at}`} data-field={part.field ?? undefined} className={isWrong ? styles.mark : undefined}>
                    {piece}
                  </span>
                ));
              })}
              {"\n"}
            </span>
          ))}
        </pre>
        <textarea
          id={id}
          className={styles.input}
          value={value}
          rows={lines.length}
          spellCheck={false}
          autoComplete="off"
          aria-invalid={error ? true : undefined}
          aria-describedby={[error ? `${id}e` : "", `${id}h`].join(" ").trim()}
          onChange={(event) => onChange(event.target.value)}
        />
      </div>
      {named.length > 0 && (
        <ol className={styles.legend} aria-hidden="true">
          {named.map((part) => (
            <li key={part.start} data-field={part.field ?? undefined}>
              <code>{part.text}</code> {words.fields[part.field ?? ""] ?? ""}
            </li>
          ))}
        </ol>
      )}
      {error && (
        <p id={`${id}e`} className={styles.error}>
          <Icon name="warning" size={16} />
          <span>{error}</span>
        </p>
      )}
      <p id={`${id}h`} className={styles.hint}>
        {words.cronHint}
      </p>
    </div>
  );
}

/** Cuts a text that begins at `start` where a marked range begins and ends. */
function pieces(whole: string, start: number, from: number, to: number): [string, boolean][] {
  const [first, last] = [Math.max(0, Math.min(whole.length, from - start)), Math.max(0, Math.min(whole.length, to - start))];
  const cut: [string, boolean][] = [
    [whole.slice(0, first), false],
    [whole.slice(first, last), true],
    [whole.slice(last), false],
  ];
  return cut.filter(([piece]) => piece !== "");
}
