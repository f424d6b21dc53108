import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useState } from "react";
import type { JobDurations } from "~/api/schema";
import { useZoneChoice } from "~/app/useZone";
import { useCanvas } from "~/components/canvas";
import { hideTip, showTip } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { useNow } from "~/model/clock";
import { nearnessOf, runningP95, topOf } from "~/model/durations";
import { isState } from "~/model/states";
import { absolute, duration, zoneName } from "~/model/times";
import { text } from "~/texts/en";
import styles from "./Durations.module.css";
import { durationsQuery, type Job, zoneOf } from "./queries";

const { took: words } = text.jobs;
const WINDOW = 20;
const PAD = 6;

/** How long the latest runs took. Where 95 of 100 take as long as the period, runs meet each other. */
export function Durations({ job }: { job: Job }) {
  const found = useQuery(durationsQuery(job.id));
  useLiveRefresh(() => void found.refetch(), { every: 10_000 });
  return found.data && found.data.items.length > 0 ? <Picture job={job} found={found.data} /> : null;
}

function Picture({ job, found }: { job: Job; found: JobDurations }) {
  const navigate = useNavigate();
  const [at, setAt] = useState<number | null>(null);
  const zone = zoneName(useZoneChoice(), zoneOf(job));
  const now = useNow();
  const runs = [...found.items].reverse();
  const seconds = runs.map((run) => run.seconds);
  const [p95, period] = [found.p95_seconds, found.period_seconds];
  const top = topOf(seconds, period);
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const y = (value: number) => height - PAD - (value / top) * (height - 2 * PAD);
      const x = (index: number) => PAD + (runs.length < 2 ? 0.5 : index / (runs.length - 1)) * (width - 2 * PAD);
      if (period !== null && period <= top) {
        context.strokeStyle = paint("--held-solid");
        context.setLineDash([4, 3]);
        context.lineWidth = 1.3;
        context.beginPath();
        context.moveTo(0, Math.round(y(period)) + 0.5);
        context.lineTo(width, Math.round(y(period)) + 0.5);
        context.stroke();
        context.setLineDash([]);
      }
      context.strokeStyle = paint("--accent");
      context.lineWidth = 1.5;
      context.lineJoin = "round";
      context.beginPath();
      runningP95(seconds, WINDOW).forEach((value, index) => (index === 0 ? context.moveTo(x(index), y(value)) : context.lineTo(x(index), y(value))));
      context.stroke();
      runs.forEach((run, index) => {
        context.fillStyle = paint(`--${isState(run.state) ? run.state : "waiting"}-solid`);
        context.beginPath();
        context.arc(x(index), y(run.seconds), index === at ? 4.5 : 2.5, 0, 2 * Math.PI);
        context.fill();
      });
    },
    [found, at],
  );
  const run = at === null ? undefined : runs[at];
  const told = run ? `${absolute(run.tick_at, zone, now)}: ${duration(run.seconds)}` : "";
  useEffect(() => {
    const canvas = ref.current;
    if (!canvas || at === null || !told) return;
    const { left, top: above, width, height } = canvas.getBoundingClientRect();
    const place = left + PAD + (runs.length < 2 ? 0.5 : at / (runs.length - 1)) * (width - 2 * PAD);
    showTip(canvas, told, new DOMRect(place - 1, above, 2, height));
    return hideTip;
  }, [at, told, runs.length, ref]);
  const open = () => run && void navigate({ to: `/runs/${run.run_id}` as never });
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) setAt(Math.max(0, Math.min(runs.length - 1, (at ?? runs.length) + step)));
    else if (event.key === "Enter") open();
    else return;
    event.preventDefault();
  };
  const nearness = nearnessOf(p95, period);
  return (
    <section className={styles.durations}>
      <h2>{words.title}</h2>
      <div className={styles.card}>
        <p className={styles.figure}>
          <strong>{duration(p95 ?? 0)}</strong> <span>{words.p95(runs.length)}</span>
        </p>
        <canvas
          ref={ref}
          className={styles.canvas}
          role="slider"
          tabIndex={0}
          aria-label={words.label(runs.length)}
          aria-valuemin={0}
          aria-valuemax={runs.length - 1}
          aria-valuenow={at ?? runs.length - 1}
          aria-valuetext={told || duration(seconds.at(-1) ?? 0)}
          onKeyDown={onKeyDown}
          onBlur={() => setAt(null)}
          onPointerLeave={() => setAt(null)}
          onClick={open}
          onPointerMove={(event) => {
            const { left, width } = event.currentTarget.getBoundingClientRect();
            const share = (event.clientX - left - PAD) / Math.max(1, width - 2 * PAD);
            setAt(Math.max(0, Math.min(runs.length - 1, Math.round(share * (runs.length - 1)))));
          }}
        />
        <ul className={styles.legend}>
          <li>
            <i data-kind="p95" /> {words.line}
          </li>
          {period !== null && period <= top && (
            <li>
              <i data-kind="period" /> {words.period(duration(period))}
            </li>
          )}
        </ul>
        {nearness && period !== null && (
          <p className={styles.verdict} data-nearness={nearness}>
            {words[nearness](duration(period))}
          </p>
        )}
      </div>
    </section>
  );
}
