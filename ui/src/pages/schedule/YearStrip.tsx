import { type KeyboardEvent, useEffect, useState } from "react";
import type { DayCount } from "~/api/schema";
import { box, useCanvas } from "~/components/canvas";
import { hideTip, showTip } from "~/components/Tip";
import { text } from "~/texts/en";
import styles from "./Simulation.module.css";

const { simulation: words } = text.scheduling;
const LABELS = 14;

/** A year of days as weeks in columns, each day as dark as it has fires. */
export function YearStrip({ days }: { days: readonly DayCount[] }) {
  const [at, setAt] = useState<number | null>(null);
  const first = days[0] ? (new Date(`${days[0].date}T00:00:00Z`).getUTCDay() + 6) % 7 : 0;
  const weeks = Math.ceil((days.length + first) / 7);
  const most = Math.max(1, ...days.map((day) => day.count));
  const total = days.reduce((sum, day) => sum + day.count, 0);
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const size = Math.min(width / weeks, (height - LABELS) / 7);
      const gap = size > 6 ? 1.5 : 0.5;
      context.font = `10px ${getComputedStyle(document.body).fontFamily}`;
      days.forEach((day, index) => {
        const [column, row] = [Math.floor((index + first) / 7), (index + first) % 7];
        const [x, y] = [column * size, LABELS + row * size];
        if (day.date.endsWith("-01")) {
          context.fillStyle = paint("--ink-3");
          context.fillText(new Intl.DateTimeFormat("en-GB", { month: "short", timeZone: "UTC" }).format(new Date(`${day.date}T00:00:00Z`)), x, 9);
        }
        context.fillStyle = paint(day.count > 0 ? "--scheduled-solid" : day.excluded > 0 ? "--held-solid" : "--line-soft");
        context.globalAlpha = day.count > 0 ? 0.3 + 0.7 * (day.count / most) : day.excluded > 0 ? 0.55 : 1;
        box(context, x, y, size - gap, size - gap, 2);
        context.globalAlpha = 1;
        if (index === at) {
          context.strokeStyle = paint("--ink");
          context.lineWidth = 1.5;
          context.strokeRect(x, y, size - gap, size - gap);
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
    const [column, row] = [Math.floor((at + first) / 7), (at + first) % 7];
    showTip(canvas, words.day(day.date, day.count, day.excluded, day.is_estimate), new DOMRect(left + column * size, top + LABELS + row * size, size, size));
    return hideTip;
  }, [at, days, weeks, first, ref]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -7, ArrowRight: 7, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setAt(Math.max(0, Math.min(days.length - 1, (at ?? 0) + (at === null ? 0 : step))));
  };
  const day = days[at ?? 0];
  return (
    <canvas
      ref={ref}
      className={styles.year}
      role="slider"
      tabIndex={0}
      aria-label={words.yearLabel(total)}
      aria-valuemin={0}
      aria-valuemax={days.length - 1}
      aria-valuenow={at ?? 0}
      aria-valuetext={day ? words.day(day.date, day.count, day.excluded, day.is_estimate) : ""}
      onKeyDown={onKeyDown}
      onBlur={() => setAt(null)}
      onPointerLeave={() => setAt(null)}
      onPointerMove={(event) => {
        const { left, top, width, height } = event.currentTarget.getBoundingClientRect();
        const size = Math.min(width / weeks, (height - LABELS) / 7);
        const row = Math.floor((event.clientY - top - LABELS) / size);
        const index = Math.floor((event.clientX - left) / size) * 7 + row - first;
        setAt(row >= 0 && row < 7 && index >= 0 && index < days.length ? index : null);
      }}
    />
  );
}
