import { Link } from "@tanstack/react-router";
import type { CalendarPreview, JobEffect } from "~/api/schema";
import { classes } from "~/components/classes";
import { Icon } from "~/components/Icon";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { words } from "~/texts/calendars";
import { longDay } from "./queries";
import styles from "./CalendarPage.module.css";

/** What a change does to each job, before it is saved. */
export function Effects({ effects, isOld }: { effects: CalendarPreview; isOld: boolean }) {
  return (
    <div className={classes(styles.effects, isOld && styles.old)} aria-busy={isOld}>
      <p>{effects.changed === 0 ? words.noEffect : words.effects(effects.changed, effects.jobs.length)}</p>
      <ul className={styles.jobs}>
        {effects.jobs.map((job) => (
          <Effect key={job.id} job={job} />
        ))}
      </ul>
      {effects.more && <p className="quiet">{words.moreJobs}</p>}
      <p className="quiet">{words.within}</p>
    </div>
  );
}

function Effect({ job }: { job: JobEffect }) {
  const isOver = job.next_after === null && job.next_before !== null;
  const isChanged = job.days.length > 0 || job.next_before !== job.next_after;
  const isMoved = job.next_before !== job.next_after && job.next_after !== null;
  const about = job.is_estimate || job.more;
  return (
    <li data-tone={isOver ? "failed" : isChanged ? "changed" : undefined}>
      <p className={styles.jobName}>
        <Link to={`/jobs/${encodeURIComponent(job.name)}` as never}>{job.name}</Link>
        {job.is_paused && <span className="quiet">{words.paused}</span>}
      </p>
      <p className="quiet">
        {job.schedule_words} · {words.choices[job.on_excluded]}
      </p>
      {isOver && (
        <p className={styles.never}>
          <Icon name="warning" size={16} /> <Explained text={words.neverHint}>{words.never}</Explained>
        </p>
      )}
      {!isChanged && <p className="quiet">{words.same}</p>}
      {job.days.length > 0 && (
        <p className={styles.counts}>
          {job.lost === job.gained ? (
            <span>{words.shifted(job.gained)}</span>
          ) : (
            <>
              {job.lost > 0 && <span>{words.lost(job.lost, about)}</span>}
              {job.gained > 0 && <span>{words.gained(job.gained, about)}</span>}
            </>
          )}
        </p>
      )}
      {isMoved && (
        <p>
          {words.nextFire}: {job.next_before && <s><Time at={job.next_before} form="absolute" precision="minute" jobZone={job.timezone} withoutZone /></s>}{" "}
          <Time at={job.next_after} form="absolute" precision="minute" jobZone={job.timezone} />
        </p>
      )}
      {job.days.length > 0 && (
        <details>
          <summary>{words.days(job.days.length, job.more)}</summary>
          <ul className={styles.dayList}>
            {job.days.map((day) => (
              <li key={day.date}>
                <span>{longDay(day.date)}</span>
                <span className="number">
                  {day.before} → {day.after}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}
