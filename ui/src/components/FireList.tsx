import type { PreviewTick } from "~/api/schema";
import { duration, millis } from "~/model/times";
import { text } from "~/texts/en";
import styles from "./FireList.module.css";
import { Time } from "./Time";
import { Explained } from "./Tip";

const { simulation: words } = text.scheduling;

/** Ticks ahead, with what is special about each: a clock change, a calendar, its jitter. */
export function FireList({ ticks, zone }: { ticks: readonly PreviewTick[]; zone: string | null }) {
  return (
    <ol className={styles.ticks}>
      {ticks.map((tick, index) => {
        const jitter = tick.fires_at ? (millis(tick.fires_at) - millis(tick.at)) / 1000 : 0;
        const dst = tick.dst ? text.jobs.dst[tick.dst] : undefined;
        const mark = tick.mark ? words.mark[tick.mark] : undefined;
        return (
          <li key={`${tick.at} ${index}`} data-mark={tick.mark ?? undefined}>
            <Time at={tick.at} form="absolute" jobZone={zone} withoutZone />
            {dst && (
              <span className={styles.mark}>
                <Explained text={dst[1]}>{dst[0]}</Explained>
              </span>
            )}
            {mark && (
              <span className={styles.mark}>
                <Explained text={mark[1]}>{mark[0]}</Explained>
              </span>
            )}
            {jitter > 0 && <span className="quiet">{words.jitter(duration(jitter))}</span>}
            <span className={styles.ago}>
              <Time at={tick.at} />
            </span>
          </li>
        );
      })}
    </ol>
  );
}
