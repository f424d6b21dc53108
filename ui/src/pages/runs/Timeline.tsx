import { useNow } from "~/model/clock";
import { duration } from "~/model/times";
import { classes } from "~/components/classes";
import { Time } from "~/components/Time";
import { useTip } from "~/components/Tip";
import { type Segment, segmentsOf, type TimelineAttempt, type TimelineRun } from "~/model/timeline";
import { text } from "~/texts/en";
import styles from "./Timeline.module.css";

const { timeline } = text.run;

/** The life of a run from left to right. Long waits are shortened, and say so. */
export function Timeline({ run, attempts }: { run: TimelineRun; attempts: readonly TimelineAttempt[] }) {
  const now = useNow();
  const segments = segmentsOf(run, attempts, now);
  if (segments.length === 0) return null;
  const last = segments.at(-1);
  return (
    <figure className={styles.timeline} aria-label={timeline.label}>
      <ol className={styles.bar}>
        {segments.map((segment, index) => (
          <SegmentView key={index} segment={segment} />
        ))}
      </ol>
      <figcaption className={styles.axis}>
        <span>
          <Time at={run.created_at} form="absolute" precision="millisecond" isFocusable />
        </span>
        {last && (run.finished_at ? <Time at={run.finished_at} form="absolute" precision="millisecond" withoutZone isFocusable /> : <span>{timeline.now}</span>)}
      </figcaption>
    </figure>
  );
}

function SegmentView({ segment }: { segment: Segment }) {
  const label = segment.kind === "attempt" ? timeline.attempt(segment.attempt ?? 0) : timeline[segment.kind];
  const told = `${label}: ${duration(segment.seconds)}${segment.isFolded ? ` (${timeline.folded})` : ""}`;
  const tip = useTip(
    <>
      <strong>{label}</strong>
      <br />
      {duration(segment.seconds)}
      {segment.outcome ? ` · ${text.run.outcomes[segment.outcome] ?? segment.outcome}` : ""}
    </>,
  );
  return (
    <li
      className={classes(styles.segment, styles[segment.kind], segment.isFolded && styles.folded, segment.isOpen && styles.open)}
      data-tone={segment.tone}
      style={{ flexGrow: segment.weight }}
      tabIndex={0}
      aria-label={told}
      {...tip}
    >
      <span aria-hidden="true">{duration(segment.seconds)}</span>
    </li>
  );
}
