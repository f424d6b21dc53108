import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { useZoneChoice } from "~/app/useZone";
import { Button } from "~/components/Button";
import { EmptyState } from "~/components/EmptyState";
import { type Bucket, Histogram } from "~/components/Histogram";
import { useTip } from "~/components/Tip";
import { useNow } from "~/model/clock";
import { type Bar, barOf, TimeScale } from "~/model/gantt";
import { ENDED, type Tone } from "~/model/states";
import { absolute, clockTime, duration, millis, zoneName } from "~/model/times";
import { arrowsOf } from "~/model/workflowGraph";
import { text } from "~/texts/en";
import { stateOf } from "./looks";
import type { WorkflowLook } from "./queries";
import styles from "./GanttTab.module.css";

const { gantt: words } = text.workflows;
const BUCKETS = 80;
const ROW = 30;

interface Row {
  place: number;
  key: string;
  id: string;
  state: Tone;
  bar: Bar;
  isOpen: boolean;
}

/** The steps over time: when each waited for others, was held, and ran. */
export function GanttTab({ look }: { look: WorkflowLook }) {
  const { from, to } = useSearch({ strict: false }) as { from?: string; to?: string };
  const navigate = useNavigate();
  const ticking = useNow();
  const isLive = !look.workflow.finished_at;
  const now = isLive ? ticking : millis(look.workflow.finished_at ?? 0);
  const arrows = useMemo(() => arrowsOf(look.steps), [look.steps]);
  const rows = useMemo(
    () =>
      look.now
        .flatMap((step, place): Row[] => {
          if (!step) return [];
          const bar = barOf(step, (arrows[place] ?? []).map((before) => look.now[before]), now);
          return [{ place, key: step.key, id: step.id, state: stateOf(step), bar, isOpen: !ENDED.has(step.state) }];
        })
        .sort((a, b) => (a.bar.startedAt ?? a.bar.to) - (b.bar.startedAt ?? b.bar.to) || a.place - b.place),
    [look.now, arrows, now],
  );
  const begin = rows.reduce((least, row) => Math.min(least, row.bar.from), now);
  const end = Math.max(rows.reduce((most, row) => Math.max(most, row.bar.to), begin), begin + 1);
  const [left, right] = [from ? Number(from) : begin, to ? Number(to) : end];
  const narrow = (range: [number, number] | null) =>
    void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, from: range ? String(Math.round(range[0])) : undefined, to: range ? String(Math.round(range[1])) : undefined })) as never });
  const buckets = useMemo(() => activity(rows, begin, end), [rows, begin, end]);
  const shown = useMemo(() => rows.filter((row) => row.bar.from <= right && row.bar.to >= left && (from === undefined || (row.bar.startedAt ?? row.bar.readyAt) <= right)), [rows, left, right, from]);
  const scale = useMemo(
    () => new TimeScale(left, right, shown.flatMap((row) => (row.bar.startedAt === null ? [] : [[row.bar.startedAt, row.bar.to] as const]))),
    [shown, left, right],
  );
  if (rows.length === 0) return <EmptyState icon="clock" title={words.empty} />;
  return (
    <div className={styles.gantt}>
      <div className={styles.activity}>
        <Histogram buckets={buckets} label={words.activity} onNarrow={(a, b) => narrow([a, b])} onWiden={() => narrow(null)} />
      </div>
      <div className={styles.legend}>
        <span data-phase="waiting">{words.phases.waiting}</span>
        <span data-phase="held">{words.phases.held}</span>
        <span data-phase="running">{words.phases.running}</span>
        {from !== undefined && (
          <Button size="small" kind="quiet" icon="fit" onClick={() => narrow(null)}>
            {words.whole}
          </Button>
        )}
      </div>
      <Rows rows={shown} scale={scale} now={now} />
    </div>
  );
}

function Rows({ rows, scale, now }: { rows: readonly Row[]; scale: TimeScale; now: number }) {
  const frame = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  const zone = zoneName(useZoneChoice());
  useLayoutEffect(() => {
    const measure = () => setOffset((frame.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const virtual = useWindowVirtualizer({ count: rows.length, estimateSize: () => ROW, overscan: 12, scrollMargin: offset });
  const length = scale.to - scale.from;
  const marks = scale.ticks(7);
  const isFolded = scale.parts.some((part) => part.isFolded);
  return (
    <div className={styles.frame}>
      <div className={styles.axis} aria-hidden="true">
        <span />
        <div className={styles.track}>
          {marks.map((at, index) => (
            <span key={at} className={styles.mark} style={{ insetInlineStart: `${scale.place(at) * 100}%` }}>
              {index === 0 || isFolded ? absolute(at, zone, now, length < 300_000 ? "second" : "minute") : clockTime(at, zone, length < 10_000 ? "millisecond" : length < 600_000 ? "second" : "minute")}
            </span>
          ))}
        </div>
      </div>
      <div ref={frame}>
        <ul className={styles.rows} style={{ height: virtual.getTotalSize() }} aria-label={words.label}>
          {scale.parts.map((part) => (part.isFolded ? <Fold key={part.from} part={part} /> : null))}
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (!row) return null;
            return (
              <li key={row.key} aria-setsize={rows.length} aria-posinset={item.index + 1} className={styles.row} style={{ transform: `translateY(${item.start - offset}px)` }}>
                <Link to={`/runs/${row.id}` as never} className={styles.name}>
                  {row.key}
                </Link>
                <Bars row={row} scale={scale} />
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}

function Fold({ part }: { part: { left: number; right: number; from: number; to: number } }) {
  const tip = useTip(words.folded(duration((part.to - part.from) / 1000)));
  return (
    <li className={styles.foldRow}>
      <span className={styles.fold} style={{ insetInlineStart: `${part.left * 100}%`, inlineSize: `${(part.right - part.left) * 100}%` }} {...tip}>
        <span className="visually-hidden">{words.folded(duration((part.to - part.from) / 1000))}</span>
      </span>
    </li>
  );
}

function Bars({ row, scale }: { row: Row; scale: TimeScale }) {
  const { bar } = row;
  const seconds = (from: number, to: number) => duration(Math.max(0, to - from) / 1000);
  const heldTo = bar.startedAt ?? bar.to;
  const told: [string, string][] = [
    [words.phases.waiting, seconds(bar.from, bar.readyAt)],
    [words.phases.held, seconds(bar.readyAt, heldTo)],
    bar.startedAt === null ? [words.phases.never, ""] : [text.states[row.state], seconds(bar.startedAt, bar.to)],
  ];
  const tip = useTip(
    <>
      <strong>{row.key}</strong>
      {told.map(([name, time]) => (
        <span key={name} className={styles.line}>
          {name} <span className="number">{time}</span>
        </span>
      ))}
    </>,
  );
  const place = (from: number, to: number) => {
    const [left, right] = [scale.place(Math.max(from, scale.from)), scale.place(Math.min(to, scale.to))];
    return { insetInlineStart: `${left * 100}%`, inlineSize: `${Math.max(0, right - left) * 100}%` };
  };
  return (
    <span className={styles.track} role="img" aria-label={told.map(([name, time]) => `${name} ${time}`).join(", ")} {...tip}>
      {bar.readyAt > bar.from && <span className={styles.waiting} style={place(bar.from, bar.readyAt)} />}
      {heldTo > bar.readyAt && row.state !== "skipped" && <span className={styles.held} style={place(bar.readyAt, heldTo)} />}
      {bar.startedAt !== null && <span className={styles.ran} data-tone={row.state} data-open={row.isOpen || undefined} style={place(bar.startedAt, bar.to)} />}
      {bar.startedAt === null && !row.isOpen && <span className={styles.never} style={{ insetInlineStart: `${scale.place(bar.to) * 100}%` }} />}
    </span>
  );
}

/** How many steps were at work in each part of the time, by what became of them. */
function activity(rows: readonly Row[], from: number, to: number): Bucket[] {
  const step = (to - from) / BUCKETS;
  const buckets: Bucket[] = Array.from({ length: BUCKETS }, (_, index) => ({ begin: from + index * step, end: from + (index + 1) * step, counts: {} }));
  for (const { bar, state } of rows) {
    if (bar.startedAt === null) continue;
    const [first, last] = [Math.floor((bar.startedAt - from) / step), Math.floor((bar.to - from) / step)];
    for (let index = Math.max(0, first); index <= Math.min(BUCKETS - 1, last); index += 1) {
      const counts = buckets[index]?.counts;
      if (counts) counts[state] = (counts[state] ?? 0) + 1;
    }
  }
  return buckets;
}
