import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import { box, useCanvas } from "~/components/canvas";
import { hideTip, showTip } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { moved, weekdayOf, WEEKDAYS } from "~/model/calendarDays";
import { LOCALE, startOfDay } from "~/model/times";
import { toneOf, worstOutcome } from "~/model/ticks";
import type { Tone } from "~/model/states";
import { text } from "~/texts/en";
import type { Job } from "./queries";
import styles from "./DayHeat.module.css";

const { jobs: words } = text;
const PAST = 182;
const AHEAD = 182;
const LABELS = 14;

interface Day {
  date: string;
  tone: Tone | null;
  isPlanned: boolean;
  isExcluded: boolean;
  isClockChange: boolean;
  told: string;
}

const dayName = (date: string) => new Intl.DateTimeFormat(LOCALE, { weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" }).format(new Date(`${date}T00:00:00Z`));

/** A year of days: the worst outcome of each past one, and what is planned. */
export function DayHeat({ job, onDay }: { job: Job; onDay: (begin: number, end: number) => void }) {
  const found = useQuery({ queryKey: key("job", job.id, "days"), queryFn: () => data(client.GET("/v1/jobs/{reference}/ticks/days", { params: { path: { reference: job.id } } })), staleTime: 30_000 });
  useLiveRefresh(() => void found.refetch(), { every: 60_000 });
  const days = useMemo<Day[]>(() => {
    if (!found.data) return [];
    const { today, clock_changes } = found.data;
    const past = new Map(found.data.days.map((day) => [day.date, day.outcomes]));
    const ahead = new Map(found.data.ahead.map((day) => [day.date, day]));
    return Array.from({ length: PAST + AHEAD + 1 }, (_, index) => {
      const date = moved(today, index - PAST);
      const outcomes = past.get(date);
      const plan = date >= today ? ahead.get(date) : undefined;
      const isClockChange = clock_changes.includes(date);
      const parts = outcomes ? Object.entries(outcomes).map(([outcome, count]) => `${words.outcomes[outcome]?.[0] ?? outcome} ${count}`) : [];
      if (plan?.count) parts.push(words.heat.planned(plan.count, plan.is_estimate));
      if (plan?.excluded) parts.push(words.heat.excluded);
      if (isClockChange) parts.push(words.heat.clocks);
      const worst = outcomes ? worstOutcome(Object.keys(outcomes)) : null;
      return {
        date,
        tone: worst === null ? null : toneOf({ tick_at: "", until_at: null, outcome: worst, run_id: null }),
        isPlanned: (plan?.count ?? 0) > 0,
        isExcluded: (plan?.excluded ?? 0) > 0 && !plan?.count,
        isClockChange,
        told: `${dayName(date)}: ${parts.join(", ") || words.heat.nothing}`,
      };
    });
  }, [found.data]);
  if (days.length === 0) return null;
  return <Picture job={job} days={days} zone={found.data?.timezone ?? "UTC"} countedFrom={found.data?.counted_from ?? null} onDay={onDay} />;
}

function Picture({ job, days, zone, countedFrom, onDay }: { job: Job; days: readonly Day[]; zone: string; countedFrom: string | null; onDay: (begin: number, end: number) => void }) {
  const [at, setAt] = useState<number | null>(null);
  const shift = days[0] ? WEEKDAYS.indexOf(weekdayOf(days[0].date)) : 0;
  const weeks = Math.ceil((days.length + shift) / 7);
  const place = (index: number, size: number) => [Math.floor((index + shift) / 7) * size, LABELS + ((index + shift) % 7) * size] as const;
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const size = Math.min(width / weeks, (height - LABELS) / 7);
      const gap = size > 6 ? 2 : 0.5;
      context.font = `10px ${getComputedStyle(document.body).fontFamily}`;
      days.forEach((day, index) => {
        const [x, y] = place(index, size);
        if (day.date.endsWith("-01")) {
          context.fillStyle = paint("--ink-3");
          context.fillText(new Intl.DateTimeFormat(LOCALE, { month: "short", timeZone: "UTC" }).format(new Date(`${day.date}T00:00:00Z`)), x, 9);
        }
        const isAhead = day.tone === null && (day.isExcluded || day.isPlanned);
        context.globalAlpha = isAhead ? 0.3 : 1;
        context.fillStyle = paint(day.tone ? `--${day.tone}-solid` : day.isExcluded ? "--held-solid" : day.isPlanned ? "--scheduled-solid" : "--sunken");
        box(context, x, y, size - gap, size - gap, 2);
        context.globalAlpha = 1;
        if (day.isClockChange || index === at || index === PAST) {
          context.strokeStyle = paint(index === at ? "--accent" : index === PAST ? "--ink" : "--held-solid");
          context.lineWidth = 1.5;
          context.strokeRect(x + 0.75, y + 0.75, size - gap - 1.5, size - gap - 1.5);
        }
      });
    },
    [days, at],
  );
  useEffect(() => {
    const canvas = ref.current;
    const day = at === null ? undefined : days[at];
    if (!canvas || !day || at === null) return;
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const size = Math.min(width / weeks, (height - LABELS) / 7);
    const [x, y] = place(at, size);
    showTip(canvas, day.told, new DOMRect(left + x, top + y, size, size));
    return hideTip;
  }, [at, days, weeks, shift, ref]);
  const scroller = useRef<HTMLDivElement>(null);
  // On a phone, today is in view at first.
  useEffect(() => {
    const element = scroller.current;
    if (element) element.scrollLeft = (element.scrollWidth * (PAST + shift)) / (weeks * 7) - element.clientWidth * 0.7;
  }, [weeks, shift]);
  const open = (index: number) => {
    const day = days[index];
    // Only days that have begun have something to show.
    if (day && index <= PAST) onDay(startOfDay(day.date, zone), startOfDay(moved(day.date, 1), zone));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -7, ArrowRight: 7, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step !== undefined) setAt(Math.max(0, Math.min(days.length - 1, (at ?? PAST) + (at === null ? 0 : step))));
    else if (event.key === "Enter" && at !== null) open(at);
    else return;
    event.preventDefault();
  };
  return (
    <section className={styles.heat}>
      <h2>{words.heat.title}</h2>
      <div className={styles.card}>
        <div ref={scroller} className={styles.scroll}>
          <canvas
            ref={ref}
            className={styles.canvas}
            role="slider"
            tabIndex={0}
            aria-label={words.heat.label(job.name)}
            aria-valuemin={0}
            aria-valuemax={days.length - 1}
            aria-valuenow={at ?? PAST}
            aria-valuetext={days[at ?? PAST]?.told ?? ""}
            onKeyDown={onKeyDown}
            onBlur={() => setAt(null)}
            onPointerLeave={() => setAt(null)}
            onClick={() => at !== null && open(at)}
            onPointerMove={(event) => {
              const { left, top, width, height } = event.currentTarget.getBoundingClientRect();
              const size = Math.min(width / weeks, (height - LABELS) / 7);
              const row = Math.floor((event.clientY - top - LABELS) / size);
              const index = Math.floor((event.clientX - left) / size) * 7 + row - shift;
              setAt(row >= 0 && row < 7 && index >= 0 && index < days.length ? index : null);
            }}
          />
        </div>
        <ul className={styles.legend}>
          {(["succeeded", "failed", "planned", "excluded", "clocks"] as const).map((kind) => (
            <li key={kind}>
              <i data-kind={kind} /> {words.heat.legend[kind]}
            </li>
          ))}
        </ul>
        {countedFrom && <p className={styles.cut}>{words.heat.cut(dayName(countedFrom.slice(0, 10)))}</p>}
      </div>
    </section>
  );
}
