import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { useZoneChoice } from "~/app/useZone";
import { greatest, isMeasured, type Line, niceScale, pointAt, timeMarks, timeScale } from "~/model/chart";
import { useNow } from "~/model/clock";
import { absolute, clockTime, dayOf, zoneName } from "~/model/times";
import { box, useCanvas } from "./canvas";
import styles from "./TimeChart.module.css";

export interface ChartLine extends Line {
  label: string;
  /** A token of the palette, such as --running-solid. */
  color: string;
}

interface Properties {
  title: string;
  label: string;
  lines: readonly ChartLine[];
  /** Milliseconds: where the first point begins, and how long each is. */
  since: number;
  step: number;
  form: "bars" | "lines";
  tell: (value: number) => string;
  isWhole?: boolean;
  /** The values are seconds. */
  isTime?: boolean;
  /** The point under the pointer, shared by charts of the same range. */
  cursor: number | null;
  onCursor: (index: number | null) => void;
  onBrush: (from: number, to: number) => void;
  none: string;
  /** Of its heading: 2 where no part of the page is around it. */
  level?: 2 | 3;
}

const BOTTOM = 18;
const TOP = 6;

/** Values over time, as stacked bars or as lines. Dragging or Shift with arrows chooses a range. */
export function TimeChart({ title, label, lines, since, step, form, tell, isWhole, isTime, cursor, onCursor, onBrush, none, level = 3 }: Properties) {
  const Heading = level === 2 ? "h2" : "h3";
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const pressed = useRef<number | null>(null);
  const now = useNow();
  const zone = zoneName(useZoneChoice());
  const count = lines[0]?.values.length ?? 0;
  const until = since + count * step;
  const greatestValue = greatest(lines, form === "bars");
  const marks = isTime ? timeScale(greatestValue) : niceScale(greatestValue, isWhole);
  const most = marks.at(-1) ?? 1;
  const isKnown = isMeasured(lines);
  const isLong = until - since > 36 * 3_600_000;
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const floor = height - BOTTOM;
      const y = (value: number) => floor - (value / most) * (floor - TOP);
      context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
      context.fillStyle = paint("--ink-3");
      context.strokeStyle = paint("--line-soft");
      context.lineWidth = 1;
      context.textBaseline = "bottom";
      for (const mark of marks) {
        context.beginPath();
        context.moveTo(0, Math.round(y(mark)) + 0.5);
        context.lineTo(width, Math.round(y(mark)) + 0.5);
        context.stroke();
      }
      const each = width / Math.max(1, count);
      const x = (at: number) => ((at - since) / (until - since)) * width;
      context.textBaseline = "alphabetic";
      let last = -Infinity;
      for (const at of timeMarks(since, until, Math.max(2, Math.floor(width / 84)))) {
        const words = isLong ? dayOf(at, zone).slice(5).split("-").reverse().join("/") : clockTime(at, zone, "minute");
        const half = context.measureText(words).width / 2;
        const place = Math.min(width - half, Math.max(half, x(at)));
        if (place - half < last + 12) continue;
        context.textAlign = "center";
        context.fillText(words, place, height - 3);
        last = place + half;
      }
      if (drag) {
        const [from, to] = [Math.min(...drag), Math.max(...drag)];
        context.fillStyle = paint("--accent");
        context.globalAlpha = 0.14;
        context.fillRect(from * each, TOP, (to - from + 1) * each, floor - TOP);
        context.globalAlpha = 1;
      } else if (cursor !== null && cursor < count) {
        context.fillStyle = paint("--hover");
        context.fillRect(cursor * each, TOP, Math.max(1, each), floor - TOP);
        context.strokeStyle = paint("--line-strong");
        context.beginPath();
        context.moveTo((cursor + 0.5) * each, TOP);
        context.lineTo((cursor + 0.5) * each, floor);
        context.stroke();
      }
      if (form === "bars") {
        const gap = each > 4 ? 1 : 0;
        for (let index = 0; index < count; index += 1) {
          let below = 0;
          for (const line of lines) {
            const value = line.values[index] ?? 0;
            if (value === 0) continue;
            const high = Math.max(1, y(below) - y(below + value));
            context.fillStyle = paint(line.color);
            box(context, index * each + gap / 2, y(below) - high, each - gap, high, 1);
            below += value;
          }
        }
      } else {
        for (const line of lines) {
          context.strokeStyle = paint(line.color);
          context.fillStyle = paint(line.color);
          context.lineWidth = 1.6;
          context.lineJoin = "round";
          context.beginPath();
          let isOpen = false;
          line.values.forEach((value, index) => {
            if (value === null) {
              isOpen = false;
              return;
            }
            const place = (index + 0.5) * each;
            const isAlone = (line.values[index - 1] ?? null) === null && (line.values[index + 1] ?? null) === null;
            if (isAlone) context.fillRect(place - 1.5, y(value) - 1.5, 3, 3);
            if (isOpen) context.lineTo(place, y(value));
            else context.moveTo(place, y(value));
            isOpen = true;
          });
          context.stroke();
        }
      }
      context.textAlign = "left";
      for (const mark of marks.slice(1)) {
        const words = tell(mark);
        context.fillStyle = paint("--surface");
        context.globalAlpha = 0.75;
        context.fillRect(0, y(mark) + 2, context.measureText(words).width + 4, 13);
        context.globalAlpha = 1;
        context.fillStyle = paint("--ink-3");
        context.fillText(words, 1, y(mark) + 12);
      }
    },
    [lines, since, step, cursor, drag, zone, form],
  );
  const indexAt = (event: PointerEvent<HTMLCanvasElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return pointAt((event.clientX - left) / width, count);
  };
  const choose = ([one, other]: [number, number]) => {
    setDrag(null);
    onBrush(since + Math.min(one, other) * step, since + (Math.max(one, other) + 1) * step);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const from = cursor ?? count - 1;
    const to = event.key === "ArrowLeft" ? from - 1 : event.key === "ArrowRight" ? from + 1 : event.key === "Home" ? 0 : event.key === "End" ? count - 1 : null;
    if (to !== null && count > 0) {
      const next = Math.max(0, Math.min(count - 1, to));
      setDrag(event.shiftKey ? [drag?.[0] ?? from, next] : null);
      onCursor(next);
    } else if (event.key === "Enter" && cursor !== null) choose(drag ?? [cursor, cursor]);
    else if (event.key === "Escape" && drag) setDrag(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = cursor !== null && cursor < count ? cursor : null;
  return (
    <figure className={styles.chart} aria-label={title}>
      <figcaption className={styles.head}>
        <Heading>{title}</Heading>
        <span className={styles.when}>{shown === null ? "" : absolute(since + shown * step, zone, now, "minute")}</span>
      </figcaption>
      <div className={styles.plot}>
        <canvas
          ref={ref}
          className={styles.canvas}
          role="slider"
          tabIndex={0}
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, count - 1)}
          aria-valuenow={shown ?? Math.max(0, count - 1)}
          aria-valuetext={told(lines, shown ?? count - 1, tell, absolute(since + (shown ?? count - 1) * step, zone, now, "minute"))}
          onKeyDown={onKeyDown}
          onBlur={() => {
            setDrag(null);
            onCursor(null);
          }}
          onPointerMove={(event) => {
            const index = indexAt(event);
            onCursor(index);
            if (pressed.current !== null && index !== null && index !== pressed.current) setDrag([pressed.current, index]);
          }}
          onPointerLeave={() => pressed.current === null && onCursor(null)}
          onPointerDown={(event) => {
            if (event.pointerType === "touch") return;
            pressed.current = indexAt(event);
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerUp={() => {
            pressed.current = null;
            if (drag) choose(drag);
          }}
        />
        {!isKnown && <p className={styles.none}>{none}</p>}
      </div>
      <ul className={styles.legend}>
        {lines.filter((line) => line.name !== "").map((line) => (
          <li key={line.name}>
            <span className={styles.swatch} style={{ background: `var(${line.color})` }} aria-hidden="true" />
            <span className={styles.name}>{line.label}</span>
            {shown !== null && <span className="number">{line.values[shown] == null ? "–" : tell(line.values[shown] ?? 0)}</span>}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function told(lines: readonly ChartLine[], index: number, tell: (value: number) => string, at: string): string {
  const parts = lines.filter((line) => line.values[index] != null).map((line) => `${line.label} ${tell(line.values[index] ?? 0)}`);
  return `${at}: ${parts.join(", ") || "–"}`;
}
