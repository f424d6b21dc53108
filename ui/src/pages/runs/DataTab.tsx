import { EmptyState } from "~/components/EmptyState";
import { JsonView } from "~/components/JsonView";
import { text } from "~/texts/en";
import type { WholeRun } from "./queries";
import styles from "./DataTab.module.css";

const { data } = text.run;

export function DataTab({ run }: { run: WholeRun }) {
  const parts: [string, unknown, string?][] = [
    [data.payload, run.payload],
    [data.result, run.result],
    [data.error, run.error],
    [data.options, run.options, data.optionsHint],
    [data.metadata, run.metadata],
  ];
  const shown = parts.filter(([, value], index) => index < 1 || !isNothing(value));
  if (shown.length === 1 && isNothing(run.payload)) return <EmptyState icon="info" title={data.none} />;
  return (
    <div className={styles.parts}>
      {shown.map(([label, value, hint]) => (
        <section key={label}>
          <h2>{label}</h2>
          {hint && <p className={styles.hint}>{hint}</p>}
          <JsonView value={value} label={label} />
        </section>
      ))}
    </div>
  );
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);
}
