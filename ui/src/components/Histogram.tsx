import { type PointerEvent, useRef, useState } from "react";
import { useNow } from "~/model/clock";
import { number } from "~/model/numbers";
import { STATES, type Tone } from "~/model/states";
import { absolute, zoneLabel, zoneName } from "~/model/times";
import { useZoneChoice } from "~/app/useZone";
import { text } from "~/texts/en";
import { box, useCanvas } from "./canvas";
import styles from "./Histogram.module.css";

export interface Bucket {
  begin: number;
  end: number;
  counts: Partial<Record<Tone, number>>;
}

interface Properties {
  buckets: readonly Bucket[];
  /** Says what the bars count, for screen readers. */
  label: string;
  onNarrow?: (from: number, to: number) => void;
  onWiden?: () => void;
}

/** From the bottom: what ended well carries what went wrong, so that the eye finds it on top. */
const ORDER: Tone[] = ["succeeded", "skipped", "cancelled", "scheduled", "waiting", "held", "ready", "running", "failed"];

/** Runs over time by state. Drag to narrow the range, double-click to widen it. */
export function Histogram({ buckets, label, onNarrow, onWiden }: Properties) {
  const [at, setAt] = useState<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const pressed = useRef<number | null>(null);
  const zone = zoneName(useZoneChoice());
  const now = useNow();
  const most = Math.max(1, ...buckets.map(total));
  const { ref } = useCanvas(
    (context, width, height, paint) => {
      const step = width / Math.max(1, buckets.length);
      const bar = Math.max(1, Math.min(step - 1.5, 14));
      const tall = height - 2;
      buckets.forEach((bucket, index) => {
        const left = index * step + (step - bar) / 2;
        const sum = total(bucket);
        const isDragged = drag && index >= Math.min(...drag) && index <= Math.max(...drag);
        if (isDragged || at === index) {
          context.fillStyle = paint(isDragged ? "--accent-soft" : "--line-soft");
          context.fillRect(index * step, 0, step, height);
        }
        if (sum === 0) {
          context.fillStyle = paint("--line-color");
          context.fillRect(left, height - 1, bar, 1);
          return;
        }
        // A square root keeps the rare failure visible beside thousands of successes.
        const whole = Math.max(3, Math.sqrt(sum / most) * tall);
        let bottom = height;
        for (const tone of ORDER) {
          const count = bucket.counts[tone] ?? 0;
          if (count === 0) continue;
          const part = Math.max(tone === "failed" ? 2 : 0.5, (count / sum) * whole);
          context.fillStyle = paint(`--${tone}-solid`);
          box(context, left, bottom - part, bar, part, 1);
          bottom -= part;
        }
      });
    },
    [buckets, at, drag, most],
  );
  const indexAt = (event: PointerEvent<HTMLCanvasElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(buckets.length - 1, Math.floor(((event.clientX - left) / width) * buckets.length)));
  };
  const shown = at === null ? null : buckets[at];
  const first = buckets[0];
  const last = buckets.at(-1);
  const sums = sumsOf(buckets);
  return (
    <figure className={styles.figure} aria-label={label}>
      <canvas
        ref={ref}
        className={styles.canvas}
        role="img"
        aria-label={`${label}: ${told(sums)}`}
        onPointerMove={(event) => {
          const index = indexAt(event);
          setAt(index);
          if (pressed.current !== null && index !== pressed.current) setDrag([pressed.current, index]);
        }}
        onPointerLeave={() => pressed.current === null && setAt(null)}
        onPointerDown={(event) => {
          if (!onNarrow) return;
          pressed.current = indexAt(event);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerUp={() => {
          if (drag && onNarrow) {
            const from = buckets[Math.min(...drag)];
            const to = buckets[Math.max(...drag)];
            if (from && to) onNarrow(from.begin, to.end);
          }
          pressed.current = null;
          setDrag(null);
        }}
        onDoubleClick={onWiden}
      />
      <figcaption className={styles.axis}>
        {shown ? (
          <>
            <span className="number">{`${absolute(shown.begin, zone, now, "second")} – ${absolute(shown.end, zone, now, "second")}`}</span>
            <span>{told(shown.counts)}</span>
          </>
        ) : (
          first &&
          last && (
            <>
              <span className="number">{absolute(first.begin, zone, now, "minute")}</span>
              <span className={styles.zone}>{zoneLabel(zone, last.end)}</span>
              <span className="number">{absolute(last.end, zone, now, "minute")}</span>
            </>
          )
        )}
      </figcaption>
    </figure>
  );
}

function total(bucket: Bucket): number {
  return Object.values(bucket.counts).reduce((sum, count) => sum + (count ?? 0), 0);
}

function sumsOf(buckets: readonly Bucket[]): Partial<Record<Tone, number>> {
  const sums: Partial<Record<Tone, number>> = {};
  for (const bucket of buckets) for (const tone of STATES) if (bucket.counts[tone]) sums[tone] = (sums[tone] ?? 0) + (bucket.counts[tone] ?? 0);
  return sums;
}

function told(counts: Partial<Record<Tone, number>>): string {
  const parts = STATES.filter((tone) => counts[tone]).map((tone) => `${number(counts[tone] ?? 0)} ${text.states[tone].toLowerCase()}`);
  return parts.join(", ") || text.histogram.nothing;
}
