import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { key } from "~/api/queries";
import { useMay } from "~/api/session";
import { useZoneChoice } from "~/app/useZone";
import { Button } from "~/components/Button";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Skeleton } from "~/components/Skeleton";
import { TickTimeline } from "~/components/TickTimeline";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { useNow } from "~/model/clock";
import { barsOf, closer, type Span, type TickBar } from "~/model/tickTimeline";
import { absolute, millis, timeRange, zoneName } from "~/model/times";
import { text } from "~/texts/en";
import { type Job, stripQuery, ticksWithin, zoneOf } from "./queries";
import { TickRows } from "./TickRows";
import { TickSums } from "./TickSums";
import styles from "./TicksTab.module.css";

const { jobs: words } = text;
const [FIRST, PAGE] = [8, 50];

interface Properties {
  job: Job;
  span: Span;
  /** The end of what is shown; null for now. */
  until: number | null;
  onZoom: (span: Span, at: number) => void;
  onBackfill: ((range: { from: number; to: number }) => void) | null;
  /** What stands between the picture and the list. */
  children?: ReactNode;
}

/** What became of the ticks of an hour, a day, a week, a month or a year. */
export function TickHistory({ job, span, until, onZoom, onBackfill, children }: Properties) {
  const strip = useQuery(stripQuery(job.id, span, until));
  useLiveRefresh(() => void strip.refetch(), { every: until === null ? (span === "hour" ? 2_000 : 10_000) : 60_000 });
  const [chosen, setChosen] = useState<{ from: number; to: number } | null>(null);
  const zone = zoneName(useZoneChoice(), zoneOf(job));
  const now = useNow();
  const bars = useMemo(() => (strip.data ? barsOf(strip.data.cells, millis(strip.data.since), millis(strip.data.until), strip.data.cell_seconds * 1000) : []), [strip.data]);
  const day = new Date(now).toDateString();
  const when = useCallback(
    (bar: { from: number; to: number }) => (bar.from === bar.to ? absolute(bar.from, zone, Date.parse(day)) : timeRange(bar.from, bar.to, zone, Date.parse(day))),
    [zone, day],
  );
  const tell = useCallback((bar: TickBar) => <Told bar={bar} when={when(bar)} />, [when]);
  const say = useCallback((bar: TickBar) => `${when(bar)}: ${bar.parts.map(({ outcome, count }) => `${words.outcomes[outcome]?.[0] ?? outcome} ${bar.isRange ? "" : count}`).join(", ")}`, [when]);
  if (strip.error && !strip.data) return <ErrorNotice error={strip.error} onRetry={() => void strip.refetch()} />;
  if (!strip.data) return <Skeleton lines={3} />;
  const [since, end] = [millis(strip.data.since), millis(strip.data.until)];
  const index = chosen ? bars.findIndex((bar) => bar.from === chosen.from && bar.to === chosen.to) : -1;
  const inside = closer(span);
  const range = chosen ?? { from: since, to: end };
  return (
    <>
      <div className={styles.card}>
        <TickTimeline
          bars={bars}
          since={since}
          until={end}
          label={words.timelineLabel(job.name, words.spans[span])}
          jobZone={zoneOf(job)}
          chosen={index < 0 ? null : index}
          tell={tell}
          say={say}
          onChoose={(at) => {
            const bar = bars[at];
            setChosen(bar && bar.from !== chosen?.from ? { from: bar.from, to: bar.to } : null);
          }}
          onZoom={(at) => inside && onZoom(inside, at)}
          onRange={onBackfill ? (from, to) => onBackfill({ from, to }) : undefined}
        />
        {bars.length === 0 ? (
          <p className={styles.sums}>{words.noneThen}</p>
        ) : (
          <TickSums outcomes={sumsOf(bars)} />
        )}
        {strip.data.counted_from && (
          <p className={styles.cut}>
            {words.stripCut} <Time at={strip.data.counted_from} form="absolute" jobZone={zoneOf(job)} />.
          </p>
        )}
      </div>
      {children}
      {chosen && (
        <p className={styles.chosen}>
          <strong>{when(chosen)}</strong>
          {inside && (
            <Button size="small" kind="quiet" icon="search" onClick={() => onZoom(inside, (chosen.from + chosen.to) / 2)}>
              {words.zoomIn}
            </Button>
          )}
          <Button size="small" kind="quiet" icon="close" onClick={() => setChosen(null)}>
            {words.wholeSpan}
          </Button>
        </p>
      )}
      <TicksOf job={job} range={range} isLive={until === null && !chosen} onBackfill={onBackfill} />
    </>
  );
}

function Told({ bar, when }: { bar: TickBar; when: string }) {
  const alone = bar.parts.length === 1 && bar.count === 1 ? bar.parts[0] : undefined;
  return (
    <span className={styles.told}>
      <span className="number">{when}</span>
      {bar.parts.map(({ outcome, count }) => (
        <strong key={outcome}>
          {words.outcomes[outcome]?.[0] ?? outcome}
          {bar.isRange || alone ? "" : ` ${count}`}
        </strong>
      ))}
      {(alone || bar.isRange) && bar.parts[0] && <span>{words.outcomes[bar.parts[0].outcome]?.[1]}</span>}
    </span>
  );
}

function sumsOf(bars: readonly TickBar[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const bar of bars) for (const { outcome, count } of bar.parts) sums.set(outcome, (sums.get(outcome) ?? 0) + count);
  return [...sums].sort((one, other) => other[1] - one[1]);
}

/** The ticks of a time as rows, page by page. */
function TicksOf({ job, range, isLive, onBackfill }: { job: Job; range: { from: number; to: number }; isLive: boolean; onBackfill: Properties["onBackfill"] }) {
  // The last moment belongs to it.
  const end = range.to + 1;
  const mayOperate = useMay("operate");
  const ticks = useInfiniteQuery({
    queryKey: key("job", job.id, "ticks", isLive ? "live" : range.from, isLive ? range.to - range.from : end),
    queryFn: ({ pageParam }) => ticksWithin(job.id, range.from, end, pageParam, pageParam ? PAGE : FIRST),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
  useLiveRefresh(() => void ticks.refetch(), { every: 5_000, isOn: isLive && (ticks.data?.pages.length ?? 0) === 1 });
  if (ticks.error && !ticks.data) return <ErrorNotice error={ticks.error} />;
  const items = ticks.data?.pages.flatMap((page) => page.items) ?? [];
  if (items.length === 0) return null;
  return (
    <TickRows
      ticks={items}
      job={job}
      onBackfill={mayOperate && onBackfill ? (tick) => onBackfill({ from: millis(tick.tick_at), to: millis(tick.until_at ?? tick.tick_at) }) : null}
      more={ticks.hasNextPage}
      onMore={() => void ticks.fetchNextPage()}
    />
  );
}
