import { useNow } from "~/model/clock";
import { absolute, browserZone, duration, full, type Instant, isZone, millis, type Precision, relative, zoneLabel, zoneName } from "~/model/times";
import { useZoneChoice } from "~/app/useZone";
import { text } from "~/texts/en";
import { useTip } from "./Tip";
import styles from "./Time.module.css";

interface Properties {
  at: Instant | null | undefined;
  /** relative: "2 min ago". absolute: the time in the chosen zone. both: one beside the other. */
  form?: "relative" | "absolute" | "both";
  jobZone?: string | null;
  precision?: Precision;
  /** Where the zone is said beside it, as in the head of a column. */
  withoutZone?: boolean;
  /** Outside of tables, a time can be focused to see it in all zones. */
  isFocusable?: boolean;
}

/** An instant. Hover or focus shows it in all zones. */
export function Time({ at, form = "relative", jobZone, precision = "second", withoutZone, isFocusable }: Properties) {
  const now = useNow();
  const zone = zoneName(useZoneChoice(), jobZone);
  const tip = useTip(at == null ? null : <AllZones at={at} jobZone={jobZone} precision={precision} />);
  if (at == null) return <span className="quiet">{text.none}</span>;
  const told = absolute(at, zone, now, precision) + (withoutZone ? "" : ` ${zoneLabel(zone, at)}`);
  return (
    <time dateTime={new Date(millis(at)).toISOString()} className={styles.time} tabIndex={isFocusable ? 0 : undefined} {...tip}>
      {form === "relative" ? relative(at, now) : told}
      {form === "both" && <span className="quiet">{`  ${relative(at, now)}`}</span>}
    </time>
  );
}

function AllZones({ at, jobZone, precision }: { at: Instant; jobZone?: string | null; precision: Precision }) {
  const here = browserZone();
  const zones: [string, string][] = [[text.zones.local, here]];
  if (here !== "UTC") zones.push([text.zones.utc, "UTC"]);
  if (jobZone && isZone(jobZone) && jobZone !== here && jobZone !== "UTC") zones.push([text.zones.job, jobZone]);
  return (
    <dl className={styles.zones}>
      {zones.map(([label, zone]) => (
        <div key={zone}>
          <dt>
            {label}
            {zone !== "UTC" && <span> {zoneLabel(zone, at)}</span>}
          </dt>
          <dd className="number">{full(at, zone, precision)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A length of time; or, without an end, the time since its start, counted on. */
export function Duration({ seconds, since, until }: { seconds?: number | null; since?: Instant | null; until?: Instant | null }) {
  if (seconds != null) return <span className="number">{duration(seconds)}</span>;
  if (since == null) return <span className="quiet">{text.none}</span>;
  if (until != null) return <span className="number">{duration((millis(until) - millis(since)) / 1000)}</span>;
  return <Growing since={since} />;
}

function Growing({ since }: { since: Instant }) {
  const now = useNow();
  return <span className="number">{duration(Math.max(0, Math.floor((now - millis(since)) / 1000)) || 0.0001)}</span>;
}
