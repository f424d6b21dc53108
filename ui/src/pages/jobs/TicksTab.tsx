import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "~/api/session";
import { Button } from "~/components/Button";
import { EmptyState } from "~/components/EmptyState";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Skeleton } from "~/components/Skeleton";
import { StateBadge } from "~/components/StateBadge";
import { TickStrip } from "~/components/TickStrip";
import { Time } from "~/components/Time";
import { Explained } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { percent } from "~/model/numbers";
import { millis } from "~/model/times";
import { sumTicks, toneOf } from "~/model/ticks";
import { text } from "~/texts/en";
import { BackfillDialog } from "./BackfillDialog";
import { useTickCells } from "./cells";
import { DayHeat } from "./DayHeat";
import { type Job, type JobTick, nextQuery, scheduleOf, ticksQuery, zoneOf } from "./queries";
import styles from "./TicksTab.module.css";

const { jobs: words } = text;
const SHOWN = 90;
const PLACES = 60;
const NEXT = 12;

/** Every due instant: what came of the past ones, and which come next. */
export function TicksTab({ job }: { job: Job }) {
  const ticks = useQuery(ticksQuery(job.id, SHOWN));
  useLiveRefresh(() => void ticks.refetch(), { every: 2_000 });
  const [chosen, setChosen] = useState<string | null>(null);
  const [range, setRange] = useState<{ from: number; to: number } | null>(null);
  const mayOperate = useMay("operate");
  const cells = useTickCells(ticks.data, job);
  const oldestFirst = [...(ticks.data ?? [])].reverse();
  const index = chosen === null ? -1 : oldestFirst.findIndex((tick) => tick.tick_at === chosen);
  const backfill = (first: number, last: number) => {
    const [begin, end] = [oldestFirst[first], oldestFirst[last]];
    if (begin && end) setRange({ from: millis(begin.tick_at), to: millis(end.until_at ?? end.tick_at) });
  };
  const { successShare, outcomes, ended } = sumTicks(oldestFirst);
  return (
    <div className={styles.columns}>
      <section className={styles.past}>
        <h2>{words.past}</h2>
        {ticks.error && !ticks.data ? (
          <ErrorNotice error={ticks.error} onRetry={() => void ticks.refetch()} />
        ) : !ticks.data ? (
          <Skeleton lines={3} />
        ) : oldestFirst.length === 0 ? (
          <EmptyState icon="clock" title={words.noTicks}>
            <p>{words.noTicksHint}</p>
          </EmptyState>
        ) : (
          <>
            <div className={styles.card}>
              <TickStrip ticks={cells} size="large" places={Math.max(PLACES, cells.length)} label={words.stripLabel(job.name, cells.length)} chosen={index < 0 ? null : index} onRange={mayOperate ? backfill : undefined} onChoose={(at) => setChosen(oldestFirst[at]?.tick_at ?? null)} />
              <div className={styles.axis}>
                <Time at={oldestFirst[0]?.tick_at} form="absolute" precision="minute" jobZone={zoneOf(job)} withoutZone />
                <Time at={oldestFirst.at(-1)?.tick_at} form="absolute" precision="minute" jobZone={zoneOf(job)} />
              </div>
              <p className={styles.sums}>
                {successShare !== null && (
                  <span>
                    <strong>{percent(successShare)}</strong> {words.ofEnded(ended)}
                  </span>
                )}
                {outcomes.map(([outcome, count]) => (
                  <Outcome key={outcome} outcome={outcome} count={count} />
                ))}
              </p>
            </div>
            {mayOperate && <p className={styles.hint}>{words.dragHint}</p>}
            {(scheduleOf(job).cron || scheduleOf(job).every || scheduleOf(job).times) && <DayHeat job={job} />}
            <TickRows ticks={ticks.data} job={job} chosen={chosen} onBackfill={mayOperate ? (tick) => setRange({ from: millis(tick.tick_at), to: millis(tick.until_at ?? tick.tick_at) }) : null} />
          </>
        )}
      </section>
      <NextFires job={job} />
      {range && <BackfillDialog job={job} range={range} onClose={() => setRange(null)} />}
    </div>
  );
}

function Outcome({ outcome, count }: { outcome: string; count: number }) {
  const told = words.outcomes[outcome];
  const tone = toneOf({ tick_at: "", until_at: null, outcome, run_id: null });
  return (
    <span className={styles.outcome}>
      <span className={styles.swatch} data-tone={tone} aria-hidden="true" />
      {told?.[1] ? <Explained text={told[1]}>{told[0]}</Explained> : (told?.[0] ?? outcome)} <span className="number">{count}</span>
    </span>
  );
}

/** The latest ticks as rows; the chosen one first of all. */
function TickRows({ ticks, job, chosen, onBackfill }: { ticks: readonly JobTick[]; job: Job; chosen: string | null; onBackfill: ((tick: JobTick) => void) | null }) {
  const [most, setMost] = useState(15);
  const first = ticks.find((tick) => tick.tick_at === chosen);
  const shown = first ? [first, ...ticks.filter((tick) => tick !== first).slice(0, most - 1)] : ticks.slice(0, most);
  return (
    <>
      <ul className={styles.rows}>
        {shown.map((tick) => (
          <li key={tick.tick_at} className={tick === first ? styles.first : undefined}>
            <StateBadge state={toneOf(tick)} word={words.outcomes[tick.outcome]?.[0] ?? tick.outcome} explain={false} />
            <span className={styles.at}>
              <Time at={tick.tick_at} form="absolute" jobZone={zoneOf(job)} withoutZone />
              {tick.until_at && (
                <>
                  {" – "}
                  <Time at={tick.until_at} form="absolute" jobZone={zoneOf(job)} withoutZone />
                </>
              )}
            </span>
            <span className={styles.why}>
              {!tick.run_id && words.outcomes[tick.outcome]?.[1]}
              {tick.run_id && <Link to={`/runs/${tick.run_id}` as never}>{words.openRun}</Link>}
              {!tick.run_id && tick.blocked_by && (
                <>
                  {" "}
                  <Link to={`/runs/${tick.blocked_by}` as never}>{words.openBlocker}</Link>
                </>
              )}
              {!tick.run_id && onBackfill && (
                <Button size="small" kind="quiet" icon="rerun" aria-label={`${words.backfillOne} ${tick.tick_at}`} onClick={() => onBackfill(tick)}>
                  {words.backfillOne}
                </Button>
              )}
            </span>
            <span className={styles.ago}>
              <Time at={tick.tick_at} />
            </span>
          </li>
        ))}
      </ul>
      {ticks.length > most && (
        <button type="button" className={styles.more} onClick={() => setMost(most + 50)}>
          {text.json.more(ticks.length - most)}
        </button>
      )}
    </>
  );
}

function NextFires({ job }: { job: Job }) {
  const next = useQuery({ ...nextQuery(job.id, NEXT), enabled: job.status === "active" });
  useLiveRefresh(() => void next.refetch(), { every: 10_000, isOn: job.status === "active" });
  if (job.status !== "active") return null;
  const zone = zoneOf(job);
  return (
    <section className={styles.next}>
      <h2>{words.next}</h2>
      {next.data ? (
        <ol className={styles.card}>
          {next.data.items.map((one, index) => (
            <li key={`${one.at} ${index}`}>
              <Time at={one.at} form="absolute" jobZone={zone} withoutZone />
              {one.dst && (
                <span className={styles.mark}>
                  <Explained text={words.dst[one.dst]?.[1] ?? ""}>{words.dst[one.dst]?.[0] ?? one.dst}</Explained>
                </span>
              )}
              <span className={styles.ago}>
                <Time at={one.at} />
              </span>
            </li>
          ))}
          {next.data.items.length === 0 && <li>{words.never}</li>}
        </ol>
      ) : next.error ? (
        <ErrorNotice error={next.error} />
      ) : (
        <Skeleton lines={6} />
      )}
    </section>
  );
}
