import { Explained } from "~/components/Tip";
import { number, percent } from "~/model/numbers";
import { isHollow, successOf, toneOf } from "~/model/ticks";
import { text } from "~/texts/en";
import styles from "./TicksTab.module.css";

const { jobs: words } = text;

/** How often each outcome came, and the share that ended well. */
export function TickSums({ outcomes }: { outcomes: readonly [string, number][] }) {
  const { share, ended } = successOf(outcomes);
  return (
    <p className={styles.sums}>
      {share !== null && (
        <span>
          <strong>{percent(share)}</strong> {words.ofEnded(ended)}
        </span>
      )}
      {outcomes.map(([outcome, count]) => {
        const told = words.outcomes[outcome];
        const tick = { tick_at: "", until_at: null, outcome, run_id: null };
        return (
          <span key={outcome} className={styles.outcome}>
            <span className={styles.swatch} data-tone={toneOf(tick)} data-hollow={isHollow(tick) || undefined} aria-hidden="true" />
            {told?.[1] ? <Explained text={told[1]}>{told[0]}</Explained> : (told?.[0] ?? outcome)} <span className="number">{number(count)}</span>
          </span>
        );
      })}
    </p>
  );
}
