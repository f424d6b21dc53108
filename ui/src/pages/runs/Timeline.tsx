import { useNow } from "~/model/clock";
import { duration } from "~/model/times";
import { classes } from "~/components/classes";
import { Time } from "~/components/Time";
import { Explained, useTip } from "~/components/Tip";
import { type Moment, momentsOf, type Segment, segmentsOf, type TimelineAttempt, type TimelineRun } from "~/model/timeline";
import { text } from "~/texts/en";
import styles from "./Timeline.module.css";

const { timeline } = text.run;

/** The life of a run from left to right. Long waits are shortened, and say so. */
export function Timeline({ run, attempts }: { run: TimelineRun; attempts: readonly TimelineAttempt[] }) {
  const now = useNow();
  const segments = segmentsOf(run, attempts, now);
  if (segments.length === 0) return null;
  return (
    <figure className={styles.timeline} aria-label={timeline.label}>
      <ol className={styles.bar}>
        {segments.map((segment, index) => (
          <SegmentView key={index} segment={segment} state={run.state} />
        ))}
      </ol>
      <figcaption>
        <Moments run={run} attempts={attempts} />
      </figcaption>
    </figure>
  );
}

/** What happened when, below the picture. */
function Moments({ run, attempts }: { run: TimelineRun; attempts: readonly TimelineAttempt[] }) {
  const now = useNow();
  const { moments, left } = momentsOf(run, attempts, now);
  return (
    <ol className={styles.moments}>
      {moments.map((moment, index) => (
        <li key={index} data-tone={moment.tone}>
          <span className={styles.what}>
            {moment.kind === "refused" ? <Explained text={timeline.refusedHint}>{timeline.refused(moment.attempt ?? 0)}</Explained> : toldOf(moment)}
          </span>
          <Time at={new Date(moment.at).toISOString()} form="absolute" precision="millisecond" withoutZone={index > 0} isFocusable />
          {moment.kind === "started" && left > 0 && <span className="quiet">{timeline.left(left)}</span>}
        </li>
      ))}
    </ol>
  );
}

function toldOf({ kind, attempt, outcome, tone }: Moment): string {
  if (kind === "failed") return `${timeline.attempt(attempt ?? 0)}: ${(text.run.outcomes[outcome ?? ""] ?? outcome ?? "").toLowerCase()}`;
  if (kind === "lost") return timeline.lost(attempt ?? 0);
  if (kind === "ended") return text.states[tone];
  if (kind === "refused") return "";
  return timeline.moments[kind] ?? "";
}

function SegmentView({ segment, state }: { segment: Segment; state: string }) {
  const waits = segment.kind === "held" && segment.isOpen ? (state === "held" ? timeline.heldNow : timeline.readyNow) : timeline.held;
  const label = segment.kind === "attempt" ? timeline.attempt(segment.attempt ?? 0) : segment.kind === "held" ? waits : timeline[segment.kind];
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
