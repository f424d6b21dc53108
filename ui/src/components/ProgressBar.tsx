import { number } from "~/model/numbers";
import { STATES, type Tone } from "~/model/states";
import { text } from "~/texts/en";
import styles from "./ProgressBar.module.css";
import { useTip } from "./Tip";

/** Parts of a whole by state, side by side. What is left stays empty. */
export function ProgressBar({ counts, total, label }: { counts: Partial<Record<Tone, number>>; total: number; label: (counts: string) => string }) {
  const parts = STATES.filter((tone) => (counts[tone] ?? 0) > 0);
  const told = parts.map((tone) => `${number(counts[tone] ?? 0)} ${text.states[tone].toLowerCase()}`).join(", ") || text.histogram.nothing;
  const tip = useTip(told);
  return (
    <span className={styles.bar} role="img" aria-label={label(told)} {...tip}>
      {parts.map((tone) => (
        <span key={tone} className={styles.part} data-tone={tone} style={{ flexGrow: counts[tone] }} />
      ))}
      <span style={{ flexGrow: Math.max(0, total - parts.reduce((sum, tone) => sum + (counts[tone] ?? 0), 0)) }} />
    </span>
  );
}
