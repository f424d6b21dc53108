import { type KeyboardEvent, type PointerEvent, type ReactNode, useEffect, useRef, useState } from "react";
import type { Tone } from "~/model/states";
import { hideTip, showTip } from "./Tip";
import { box, useCanvas } from "./canvas";
import { classes } from "./classes";
import styles from "./TickStrip.module.css";

export interface TickCell {
  key: string;
  tone: Tone;
  /** Ticks that made no run are hollow. */
  isHollow?: boolean;
  /** Says in words what this tick was. */
  told: ReactNode;
}

interface Properties {
  /** The oldest first. */
  ticks: readonly TickCell[];
  label: string;
  size?: "small" | "large";
  onChoose?: (index: number) => void;
  chosen?: number | null;
  /** Called with the first and the last of the cells that were dragged over, or marked with Shift and the arrows. */
  onRange?: (first: number, last: number) => void;
  /** So many cells have room, also while there are fewer ticks. */
  places?: number;
}

/** Due ticks as cells, the latest at the right. */
export function TickStrip({ ticks, label, size = "small", onChoose, onRange, chosen = null, places = ticks.length }: Properties) {
  const [at, setAt] = useState<number | null>(null);
  const [from, setFrom] = useState<number | null>(null);
  const isDragging = useRef(false);
  const range = from === null || at === null || from === at ? null : ([Math.min(from, at), Math.max(from, at)] as const);
  const shift = Math.max(0, places - ticks.length);
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const step = width / Math.max(1, places);
      const gap = Math.min(2, step * 0.25);
      const draw = (index: number, tone: Tone | null, isHollow = false) => {
        const x = index * step + gap / 2;
        if (tone === null) {
          context.fillStyle = paint("--line-soft");
          box(context, x, height / 2 - 1, step - gap, 2, 1);
          return;
        }
        if (isHollow) {
          context.strokeStyle = paint(`--${tone}-solid`);
          context.lineWidth = 1.3;
          context.beginPath();
          context.roundRect(x + 0.7, height * 0.2, Math.max(1, step - gap - 1.4), height * 0.6, 1.5);
          context.stroke();
        } else {
          context.fillStyle = paint(`--${tone}-solid`);
          box(context, x, tone === "failed" ? 0 : height * 0.12, step - gap, tone === "failed" ? height : height * 0.76, 2);
        }
      };
      for (let index = 0; index < shift; index += 1) draw(index, null);
      ticks.forEach((tick, index) => draw(index + shift, tick.tone, tick.isHollow));
      if (range) {
        context.fillStyle = paint("--accent");
        context.globalAlpha = 0.18;
        box(context, (range[0] + shift) * step, 0, (range[1] - range[0] + 1) * step, height, 3);
        context.globalAlpha = 1;
      }
      for (const marked of [chosen, at]) {
        if (marked === null || marked >= ticks.length) continue;
        context.strokeStyle = paint(marked === chosen ? "--accent" : "--ink-2");
        context.lineWidth = 1.5;
        context.strokeRect((marked + shift) * step + 0.75, 0.75, step - 1.5, height - 1.5);
      }
    },
    [ticks, at, chosen, places, from],
  );
  useEffect(() => {
    const canvas = ref.current;
    const tick = at === null ? undefined : ticks[at];
    if (!canvas || !tick || at === null) return;
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const step = width / Math.max(1, places);
    showTip(canvas, tick.told, new DOMRect(left + (at + shift) * step, top, step, height));
    return hideTip;
  }, [at, ticks, places, shift, ref]);
  const indexAt = (event: PointerEvent<HTMLCanvasElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const index = Math.floor(((event.clientX - left) / width) * places) - shift;
    return index >= 0 && index < ticks.length ? index : null;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = ticks.length - 1;
    const start = at ?? chosen ?? last;
    const isArrow = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (onRange && isArrow) setFrom(event.shiftKey ? (from ?? start) : null);
    if (event.key === "ArrowLeft") setAt(Math.max(0, start - 1));
    else if (event.key === "ArrowRight") setAt(Math.min(last, start + 1));
    else if (event.key === "Home") setAt(0);
    else if (event.key === "End") setAt(last);
    else if ((event.key === "Enter" || event.key === " ") && range && onRange) {
      setFrom(null);
      onRange(...range);
    } else if ((event.key === "Enter" || event.key === " ") && at !== null) onChoose?.(at);
    else if (event.key === "Escape" && from !== null) setFrom(null);
    else return;
    event.preventDefault();
  };
  return (
    <canvas
      ref={ref}
      className={classes(styles.strip, size === "large" && styles.large, onChoose && styles.choosable)}
      role={onChoose ? "slider" : "img"}
      aria-label={label}
      {...(onChoose
        ? { tabIndex: 0, "aria-valuemin": 0, "aria-valuemax": Math.max(0, ticks.length - 1), "aria-valuenow": at ?? chosen ?? Math.max(0, ticks.length - 1), onKeyDown }
        : {})}
      onPointerDown={(event) => {
        if (!onRange || event.pointerType === "touch") return;
        event.currentTarget.setPointerCapture(event.pointerId);
        isDragging.current = true;
        setFrom(indexAt(event));
      }}
      onPointerUp={() => {
        isDragging.current = false;
        setFrom(null);
        if (range) onRange?.(...range);
        else if (at !== null && onRange) onChoose?.(at);
      }}
      onPointerCancel={() => {
        isDragging.current = false;
        setFrom(null);
      }}
      onPointerMove={(event) => setAt(indexAt(event))}
      onPointerOut={() => !isDragging.current && setAt(null)}
      onBlur={() => {
        setAt(null);
        setFrom(null);
      }}
      onClick={() => !onRange && at !== null && onChoose?.(at)}
    />
  );
}
