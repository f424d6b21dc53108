import { type KeyboardEvent, type PointerEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useZoneChoice } from "~/app/useZone";
import { timeMarks } from "~/model/chart";
import { isHollow, toneOf } from "~/model/ticks";
import { barAt, rangeOf, type TickBar } from "~/model/tickTimeline";
import { axisTime, zoneName } from "~/model/times";
import { box, useCanvas } from "./canvas";
import { hideTip, showTip } from "./Tip";
import styles from "./TickTimeline.module.css";

interface Properties {
  bars: readonly TickBar[];
  since: number;
  until: number;
  label: string;
  jobZone: string | null;
  chosen: number | null;
  tell: (bar: TickBar) => ReactNode;
  /** The same as plain text, for screen readers. */
  say: (bar: TickBar) => string;
  onChoose: (index: number) => void;
  onZoom: (at: number) => void;
  /** Called with the part of the time that was dragged over. */
  onRange?: (from: number, to: number) => void;
}

const AXIS = 18;
const toneFor = (outcome: string) => toneOf({ tick_at: "", until_at: null, outcome, run_id: null });
const isEmpty = (outcome: string) => isHollow({ tick_at: "", until_at: null, outcome, run_id: null });

/** Due ticks on an axis of time. Click a bar to read about it, double-click to zoom in, drag over any part of it. */
export function TickTimeline({ bars, since, until, label, jobZone, chosen, tell, say, onChoose, onZoom, onRange }: Properties) {
  const [at, setAt] = useState<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const pressed = useRef<number | null>(null);
  // The click that ends a drag chooses nothing.
  const hasDragged = useRef(false);
  const [from, setFrom] = useState<number | null>(null);
  const zone = zoneName(useZoneChoice(), jobZone);
  const marked = from !== null && at !== null && from !== at ? [Math.min(from, at), Math.max(from, at)] : null;
  const { ref, width: canvasWidth } = useCanvas(
    (context, width, height, paint) => {
      const floor = height - AXIS;
      const placed = (bar: TickBar) => ({ x: bar.left * width, w: Math.max(2, (bar.right - bar.left) * width) });
      context.fillStyle = paint("--line-soft");
      box(context, 0, floor / 2 - 1, width, 2, 1);
      bars.forEach((bar, index) => {
        const { x, w } = placed(bar);
        const gap = w > 4 ? Math.min(2, w * 0.25) : 0;
        if (bar.isRange) {
          const tone = toneFor(bar.parts[0]?.outcome ?? "missed");
          context.fillStyle = paint(`--${tone}-soft`);
          context.strokeStyle = paint(`--${tone}-solid`);
          context.lineWidth = 1.3;
          context.beginPath();
          context.roundRect(x + 0.7, floor * 0.28, Math.max(1.5, w - 1.4), floor * 0.44, 3);
          context.fill();
          context.stroke();
        } else {
          const hasFailed = bar.parts.some((part) => part.outcome === "failed");
          const [top, tall] = hasFailed ? [0, floor] : [floor * 0.12, floor * 0.76];
          let y = top;
          bar.parts.forEach((part, place) => {
            const isLast = place === bar.parts.length - 1;
            const tallOf = isLast ? top + tall - y : Math.min(tall * 0.8, Math.max(3, (part.count / bar.count) * tall));
            const tone = toneFor(part.outcome);
            if (isEmpty(part.outcome)) {
              context.strokeStyle = paint(`--${tone}-solid`);
              context.lineWidth = 1.3;
              context.beginPath();
              context.roundRect(x + gap / 2 + 0.7, y + 0.7, Math.max(1, w - gap - 1.4), Math.max(1, tallOf - 1.4), 1.5);
              context.stroke();
            } else {
              context.fillStyle = paint(`--${tone}-solid`);
              box(context, x + gap / 2, y, Math.max(1.5, w - gap), tallOf, 2);
            }
            y += tallOf;
          });
        }
        const isMarked = marked && index >= (marked[0] ?? 0) && index <= (marked[1] ?? 0);
        if (index === chosen || index === at || isMarked) {
          context.strokeStyle = paint(index === chosen || isMarked ? "--accent" : "--ink-2");
          context.lineWidth = 1.5;
          context.strokeRect(Math.max(0.75, x - 0.5), 0.75, Math.min(w + 1, width - x - 0.75), floor - 1.5);
        }
      });
      if (drag) {
        context.fillStyle = paint("--accent");
        context.globalAlpha = 0.16;
        box(context, Math.min(...drag) * width, 0, Math.abs(drag[1] - drag[0]) * width, floor, 3);
        context.globalAlpha = 1;
      }
      context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
      context.fillStyle = paint("--ink-3");
      let last = -Infinity;
      for (const mark of timeMarks(since, until, Math.max(2, Math.floor(width / 90)))) {
        const words = axisTime(mark, zone, until - since);
        const half = context.measureText(words).width / 2;
        const place = Math.min(width - half, Math.max(half, ((mark - since) / (until - since)) * width));
        if (place - half < last + 10) continue;
        context.textAlign = "center";
        context.fillText(words, place, height - 3);
        last = place + half;
      }
    },
    [bars, since, until, at, chosen, drag, from, zone],
  );
  const shareAt = (event: { clientX: number; currentTarget: HTMLCanvasElement }) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return (event.clientX - left) / width;
  };
  useEffect(() => {
    const canvas = ref.current;
    const bar = at === null ? undefined : bars[at];
    if (!canvas || !bar || drag) return;
    const { left, top, width, height } = canvas.getBoundingClientRect();
    showTip(canvas, tell(bar), new DOMRect(left + bar.left * width, top, (bar.right - bar.left) * width, height - AXIS));
    return hideTip;
  }, [at, bars, drag, ref, tell]);
  const near = canvasWidth > 0 ? 6 / canvasWidth : 0.01;
  const onKeyDown = (event: KeyboardEvent) => {
    const last = bars.length - 1;
    const start = at ?? chosen ?? last;
    const to = { ArrowLeft: Math.max(0, start - 1), ArrowRight: Math.min(last, start + 1), Home: 0, End: last }[event.key];
    if (to !== undefined && last >= 0) {
      setFrom(event.shiftKey && onRange ? (from ?? start) : null);
      setAt(to);
    } else if (event.key === "Enter" || event.key === " ") {
      const [first, final] = marked ? [bars[marked[0] ?? 0], bars[marked[1] ?? 0]] : [];
      if (first && final && onRange) onRange(first.from, final.to);
      else if (at !== null) onChoose(at);
      setFrom(null);
    } else if (event.key === "+" && at !== null) onZoom(((bars[at]?.from ?? since) + (bars[at]?.to ?? until)) / 2);
    else if (event.key === "Escape" && from !== null) setFrom(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = bars[at ?? chosen ?? bars.length - 1];
  return (
    <canvas
      ref={ref}
      className={styles.timeline}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, bars.length - 1)}
      aria-valuenow={Math.max(0, at ?? chosen ?? bars.length - 1)}
      aria-valuetext={shown ? say(shown) : label}
      onKeyDown={onKeyDown}
      onPointerDown={(event: PointerEvent<HTMLCanvasElement>) => {
        if (!onRange || event.pointerType === "touch" || event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        pressed.current = shareAt(event);
        hasDragged.current = false;
      }}
      onPointerMove={(event) => {
        const share = shareAt(event);
        if (pressed.current !== null && Math.abs(share - pressed.current) > near) {
          hasDragged.current = true;
          setDrag([pressed.current, Math.max(0, Math.min(1, share))]);
        }
        const found = barAt(bars, share, near);
        setAt(found < 0 ? null : found);
      }}
      onPointerUp={() => {
        pressed.current = null;
        if (!drag) return;
        setDrag(null);
        const { from: begin, to } = rangeOf(...drag, since, until);
        onRange?.(begin, to);
      }}
      onPointerCancel={() => {
        pressed.current = null;
        setDrag(null);
      }}
      onPointerLeave={() => pressed.current === null && setAt(null)}
      onBlur={() => {
        setAt(null);
        setFrom(null);
      }}
      onClick={(event) => {
        const found = barAt(bars, shareAt(event), near);
        if (!hasDragged.current && found >= 0) onChoose(found);
      }}
      onDoubleClick={(event) => onZoom(since + shareAt(event) * (until - since))}
    />
  );
}
