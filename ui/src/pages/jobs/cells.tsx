import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { StateBadge } from "~/components/StateBadge";
import { type TickCell, TickStrip } from "~/components/TickStrip";
import { Time } from "~/components/Time";
import { useTip } from "~/components/Tip";
import { useNow } from "~/model/clock";
import { percent } from "~/model/numbers";
import { isHollow, sumTicks, toneOf } from "~/model/ticks";
import { absolute, countdown, millis, zoneLabel, zoneName } from "~/model/times";
import { useZoneChoice } from "~/app/useZone";
import { sentence, text } from "~/texts/en";
import { type Job, type JobTick, ticksQuery, zoneOf } from "./queries";
import styles from "./cells.module.css";

const STATE_OF: Record<string, string> = { active: "ready", paused: "held", ended: "skipped" };

export function JobStatus({ job }: { job: Job }) {
  const reason = job.status === "paused" && job.paused_reason ? sentence(job.paused_reason) : text.jobs.statusMeanings[job.status];
  const tip = useTip(reason ?? null);
  return (
    <span {...tip}>
      <StateBadge state={STATE_OF[job.status] ?? "waiting"} word={text.jobs.statuses[job.status] ?? job.status} isQuiet={job.status === "active"} explain={false} />
    </span>
  );
}

/** The schedule in words, with its zone. */
export function ScheduleWords({ job }: { job: Job }) {
  const zone = zoneOf(job);
  return (
    <span className={styles.schedule}>
      <span className={styles.words}>{capital(job.schedule_words)}</span>
      {zone && <span className={styles.zone}>{zone.replaceAll("_", " ")}</span>}
    </span>
  );
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Counts down to the next tick. Past it, it says so, and does not stay at zero. */
export function NextFire({ job }: { job: Job }) {
  const now = useNow();
  if (job.status === "paused") return job.paused_until ? <span className="quiet">{text.jobs.resumes} <Time at={job.paused_until} /></span> : <span className="quiet">{text.none}</span>;
  if (!job.next_at) return <span className="quiet">{text.none}</span>;
  const seconds = (millis(job.next_at) - now) / 1000;
  if (seconds > 86_400) return <Time at={job.next_at} jobZone={zoneOf(job)} />;
  return <Countdown at={job.next_at} seconds={seconds} />;
}

function Countdown({ at, seconds }: { at: string; seconds: number }) {
  const tip = useTip(<Time at={at} form="absolute" />);
  return (
    <span className="number" {...tip}>
      {seconds <= 0 ? text.jobs.now : countdown(seconds)}
    </span>
  );
}

/** What a tick was, in words. */
export function TickTold({ tick, zone }: { tick: JobTick; zone: string }): ReactNode {
  const words = text.jobs.outcomes[tick.outcome];
  return (
    <span className={styles.told}>
      <strong>{words?.[0] ?? tick.outcome}</strong>
      <span className="number">
        {absolute(tick.tick_at, zone, Date.now())} {zoneLabel(zone, tick.tick_at)}
      </span>
      {words?.[1] && <span>{words[1]}</span>}
    </span>
  );
}

export function useTickCells(ticks: readonly JobTick[] | undefined, job: Job): TickCell[] {
  const zone = zoneName(useZoneChoice(), zoneOf(job));
  return [...(ticks ?? [])].reverse().map((tick) => ({ key: tick.tick_at, tone: toneOf(tick), isHollow: isHollow(tick), told: <TickTold tick={tick} zone={zone} /> }));
}

/** The last 30 ticks of a job. */
export function JobTicks({ job }: { job: Job }) {
  const { data: ticks } = useQuery(ticksQuery(job.id, 30));
  const cells = useTickCells(ticks, job);
  const { successShare } = sumTicks(ticks ?? []);
  return (
    <span className={styles.strip}>
      <TickStrip ticks={cells} places={30} label={text.jobs.stripLabel(job.name, cells.length)} />
      <span className={styles.share}>{successShare === null ? "" : percent(successShare)}</span>
    </span>
  );
}
