import { Link } from "@tanstack/react-router";
import { Button } from "~/components/Button";
import { StateBadge } from "~/components/StateBadge";
import { Time } from "~/components/Time";
import { toneOf } from "~/model/ticks";
import { text } from "~/texts/en";
import { type Job, type JobTick, zoneOf } from "./queries";
import styles from "./TicksTab.module.css";

const { jobs: words } = text;

interface Properties {
  ticks: readonly JobTick[];
  job: Job;
  /** The instant of the tick that was chosen. */
  chosen?: string | null;
  onBackfill: ((tick: JobTick) => void) | null;
  more: number | boolean;
  onMore: () => void;
}

/** Ticks as rows: why each has no run, or its run. */
export function TickRows({ ticks, job, chosen = null, onBackfill, more, onMore }: Properties) {
  return (
    <>
      <ul className={styles.rows}>
        {ticks.map((tick) => (
          <li key={`${tick.tick_at} ${tick.run_id}`} className={tick.tick_at === chosen ? styles.first : undefined}>
            <StateBadge state={toneOf(tick)} word={words.outcomes[tick.outcome]?.[0] ?? tick.outcome} explain={false} />
            <span className={styles.at}>
              <Time at={tick.tick_at} form="absolute" jobZone={zoneOf(job)} withoutZone />
              {tick.until_at && (
                <>
                  {" – "}
                  <Time at={tick.until_at} form="absolute" jobZone={zoneOf(job)} withoutZone />
                </>
              )}
            </span>
            <span className={styles.why}>
              {!tick.run_id && words.outcomes[tick.outcome]?.[1]}
              {tick.run_id && <Link to={`/runs/${tick.run_id}` as never}>{words.openRun}</Link>}
              {!tick.run_id && tick.blocked_by && (
                <>
                  {" "}
                  <Link to={`/runs/${tick.blocked_by}` as never}>{words.openBlocker}</Link>
                </>
              )}
            </span>
            <span className={styles.ago}>
              {!tick.run_id && onBackfill ? (
                <Button size="small" kind="quiet" icon="rerun" aria-label={`${words.backfillOne} ${tick.tick_at}`} onClick={() => onBackfill(tick)}>
                  {words.backfillOne}
                </Button>
              ) : (
                <Time at={tick.tick_at} />
              )}
            </span>
          </li>
        ))}
      </ul>
      {more && (
        <button type="button" className={styles.more} onClick={onMore}>
          {typeof more === "number" ? text.json.more(more) : words.earlierTicks}
        </button>
      )}
    </>
  );
}
