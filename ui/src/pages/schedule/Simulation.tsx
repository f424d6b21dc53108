import type { SchedulePreview } from "~/api/schema";
import { classes } from "~/components/classes";
import { FireList } from "~/components/FireList";
import { Skeleton } from "~/components/Skeleton";
import { Time } from "~/components/Time";
import { duration } from "~/model/times";
import { text } from "~/texts/en";
import styles from "./Simulation.module.css";
import { YearStrip } from "./YearStrip";

const { simulation: words } = text.scheduling;
const NEXT = 8;

/** What a schedule will do, as the server works it out. */
export function Simulation({ preview, isOld, isWrong, overlap }: { preview: SchedulePreview | undefined; isOld: boolean; isWrong: boolean; overlap: string }) {
  if (!preview) return isWrong ? <p className={styles.waiting}>{words.waiting}</p> : <Skeleton lines={8} />;
  const { replay, crowding } = preview;
  const more = preview.saved_fires_per_week === null ? null : preview.fires_per_week - preview.saved_fires_per_week;
  return (
    <div className={classes(styles.parts, isOld && styles.old)} aria-busy={isOld}>
      <section>
        <p className={styles.words}>{preview.words}</p>
        <p className={styles.week}>
          <strong>{words.perWeek(preview.fires_per_week)}</strong>
          {more !== null && <span data-more={more > 0.04 ? "more" : more < -0.04 ? "fewer" : undefined}>{more > 0.04 ? words.more(more) : more < -0.04 ? words.fewer(-more) : words.same}</span>}
        </p>
        {preview.notes.map((note) => (
          <p key={note} className={styles.note}>
            {note}
          </p>
        ))}
      </section>
      <section>
        <h3>{words.next}</h3>
        <FireList ticks={preview.next.slice(0, NEXT)} zone={preview.timezone} />
      </section>
      <section>
        <h3>{words.year}</h3>
        <YearStrip days={preview.days} />
      </section>
      <section>
        <h3>{words.odd}</h3>
        {preview.odd_nights.length === 0 && <p className="quiet">{words.noOdd}</p>}
        {preview.odd_nights.map((night) => (
          <div key={night.at} className={styles.night}>
            <p>
              {night.kind === "gap" ? words.gap(night.minutes) : words.fold(night.minutes)}: <Time at={night.at} form="absolute" precision="minute" jobZone={preview.timezone} withoutZone />
            </p>
            {night.ticks.length === 0 ? <p className="quiet">{words.noFire}</p> : night.ticks.length > 4 ? <p className="quiet">{words.fires(night.ticks.length, night.more)}</p> : <FireList ticks={night.ticks} zone={preview.timezone} />}
          </div>
        ))}
      </section>
      {replay && (
        <section>
          <h3>{words.replay}</h3>
          <p>{words.replayText(replay.ticks, duration(replay.median_seconds))}</p>
          <p className={replay.overlaps > 0 ? styles.warn : undefined}>{words.overlaps(replay.overlaps, overlap === "skip" ? replay.overlaps : 0)}</p>
        </section>
      )}
      <section>
        <h3>{words.crowding}</h3>
        {crowding.shared === 0 ? (
          <p>{words.alone(crowding.queue)}</p>
        ) : (
          <p>
            {words.crowded(crowding.shared, crowding.fires, crowding.queue)} {words.busiest(crowding.busiest)} <Time at={crowding.busiest_at} form="absolute" precision="minute" jobZone={preview.timezone} />.
          </p>
        )}
      </section>
    </div>
  );
}
