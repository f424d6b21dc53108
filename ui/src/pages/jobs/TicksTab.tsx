import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "~/api/session";
import { IconButton } from "~/components/Button";
import { EmptyState } from "~/components/EmptyState";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Segments } from "~/components/Segments";
import { Skeleton } from "~/components/Skeleton";
import { TickStrip } from "~/components/TickStrip";
import { Time } from "~/components/Time";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { serverNow } from "~/model/clock";
import { endAround, isSpan, SPAN_NAMES, SPANS, type Span } from "~/model/tickTimeline";
import { sumTicks } from "~/model/ticks";
import { millis } from "~/model/times";
import { text } from "~/texts/en";
import { BackfillDialog } from "./BackfillDialog";
import { useTickCells } from "./cells";
import { DayHeat } from "./DayHeat";
import { Durations } from "./Durations";
import { NextFires } from "./NextFires";
import { type Job, scheduleOf, ticksQuery, zoneOf } from "./queries";
import { TickHistory } from "./TickHistory";
import { TickRows } from "./TickRows";
import { TickSums } from "./TickSums";
import styles from "./TicksTab.module.css";

const { jobs: words } = text;
const SHOWN = 90;
const PLACES = 60;

type Range = { from: number; to: number };

/** Every due instant: what came of the past ones, and which come next. */
export function TicksTab({ job }: { job: Job }) {
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as { span?: string; until?: string };
  const span = isSpan(search.span) ? search.span : null;
  const until = span && search.until ? millis(search.until) || null : null;
  const [range, setRange] = useState<Range | null>(null);
  const mayOperate = useMay("operate");
  const show = (to: Span | null, end: number | null) =>
    void navigate({ to: `/jobs/${encodeURIComponent(job.name)}/ticks` as never, search: { span: to ?? undefined, until: to && end !== null && end < serverNow() - 1_000 ? new Date(end).toISOString() : undefined } as never, resetScroll: false, replace: true });
  const isTimed = scheduleOf(job).cron || scheduleOf(job).every || scheduleOf(job).times;
  const heat = isTimed ? <DayHeat job={job} onDay={(_begin, end) => show("day", end)} /> : null;
  const backfill = mayOperate ? setRange : null;
  const hint = mayOperate && <p className={styles.hint}>{span ? words.zoomHint : words.dragHint}</p>;
  return (
    <div className={styles.columns}>
      <section className={styles.past}>
        <header className={styles.head}>
          <h2>{words.past}</h2>
          <div className={styles.zoom}>
            {span && (
              <>
                <IconButton icon="chevron" className={styles.back} size="small" label={words.earlier} onClick={() => show(span, (until ?? serverNow()) - SPANS[span] / 2)} />
                <IconButton icon="chevron" size="small" label={words.later} blocked={until === null ? words.isNow : null} onClick={() => show(span, (until ?? serverNow()) + SPANS[span] / 2)} />
              </>
            )}
            <Segments
              label={words.zoom}
              value={span ?? ""}
              options={[{ value: "", label: words.spans.latest }, ...SPAN_NAMES.map((value) => ({ value, label: words.spans[value] }))]}
              onChange={(value) => show(isSpan(value) ? value : null, isSpan(value) && until !== null && span ? endAround(until - SPANS[span] / 2, value, serverNow()) : null)}
            />
          </div>
        </header>
        {span ? (
          <TickHistory key={`${span} ${until}`} job={job} span={span} until={until} onZoom={(to, at) => show(to, endAround(at, to, serverNow()))} onBackfill={backfill}>
            {hint}
          </TickHistory>
        ) : (
          <LatestTicks job={job} onBackfill={backfill}>
            {hint}
          </LatestTicks>
        )}
        {heat}
      </section>
      <div className={styles.aside}>
        <NextFires job={job} />
        <Durations job={job} />
      </div>
      {range && <BackfillDialog job={job} range={range} onClose={() => setRange(null)} />}
    </div>
  );
}

/** The latest ticks side by side, however far apart they are. */
function LatestTicks({ job, onBackfill, children }: { job: Job; onBackfill: ((range: Range) => void) | null; children: React.ReactNode }) {
  const ticks = useQuery(ticksQuery(job.id, SHOWN));
  useLiveRefresh(() => void ticks.refetch(), { every: 2_000 });
  const [chosen, setChosen] = useState<string | null>(null);
  const [most, setMost] = useState(8);
  const cells = useTickCells(ticks.data, job);
  const latest = ticks.data ?? [];
  const oldestFirst = [...latest].reverse();
  if (ticks.error && !ticks.data) return <ErrorNotice error={ticks.error} onRetry={() => void ticks.refetch()} />;
  if (!ticks.data) return <Skeleton lines={3} />;
  if (oldestFirst.length === 0)
    return (
      <>
        <EmptyState icon="clock" title={words.noTicks}>
          <p>{words.noTicksHint}</p>
        </EmptyState>
        {children}
      </>
    );
  const index = chosen === null ? -1 : oldestFirst.findIndex((tick) => tick.tick_at === chosen);
  const backfill = (first: number, last: number) => {
    const [begin, end] = [oldestFirst[first], oldestFirst[last]];
    if (begin && end) onBackfill?.({ from: millis(begin.tick_at), to: millis(end.until_at ?? end.tick_at) });
  };
  const first = latest.find((tick) => tick.tick_at === chosen);
  const shown = first ? [first, ...latest.filter((tick) => tick !== first).slice(0, most - 1)] : latest.slice(0, most);
  return (
    <>
      <div className={styles.card}>
        <TickStrip ticks={cells} size="large" places={Math.max(PLACES, cells.length)} label={words.stripLabel(job.name, cells.length)} chosen={index < 0 ? null : index} onRange={onBackfill ? backfill : undefined} onChoose={(at) => setChosen(oldestFirst[at]?.tick_at ?? null)} />
        <div className={styles.axis}>
          <Time at={oldestFirst[0]?.tick_at} form="absolute" precision="minute" jobZone={zoneOf(job)} withoutZone />
          <Time at={oldestFirst.at(-1)?.tick_at} form="absolute" precision="minute" jobZone={zoneOf(job)} />
        </div>
        <TickSums outcomes={sumTicks(oldestFirst).outcomes} />
      </div>
      {children}
      <TickRows
        ticks={shown}
        job={job}
        chosen={chosen}
        onBackfill={onBackfill ? (tick) => onBackfill({ from: millis(tick.tick_at), to: millis(tick.until_at ?? tick.tick_at) }) : null}
        more={latest.length > most ? latest.length - most : false}
        onMore={() => setMost(most + 50)}
      />
    </>
  );
}
