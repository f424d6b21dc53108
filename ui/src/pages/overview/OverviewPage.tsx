import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { OverviewShown } from "~/api/schema";
import { Unavailable } from "~/components/EmptyState";
import { PageHeader } from "~/components/PageHeader";
import { Skeleton } from "~/components/Skeleton";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { healthOf } from "~/model/health";
import { bounded, number } from "~/model/numbers";
import { duration, roughly } from "~/model/times";
import { text } from "~/texts/en";
import { Welcome } from "../runs/Welcome";
import { AttentionList } from "./AttentionList";
import { Charts } from "./Charts";
import { NextHour } from "./NextHour";
import { overviewQuery, type Range, RANGES } from "./queries";
import styles from "./OverviewPage.module.css";

const { overview: words } = text;

/** How things are, in one look. An empty installation greets. */
export function OverviewPage() {
  const { range = "3h" } = useSearch({ strict: false }) as { range?: string };
  const navigate = useNavigate();
  const found = useQuery(overviewQuery());
  useLiveRefresh(() => void found.refetch(), { every: 2_000 });
  if (found.error && !found.data) return <Unavailable error={found.error} what={words.title} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={8} height="1.5rem" />;
  const seen = found.data;
  if (seen.is_empty) return <Welcome />;
  const health = healthOf(seen);
  const chosen = (range in RANGES ? range : "3h") as Range;
  return (
    <>
      <PageHeader
        title={words.title}
        heading={
          <span className={styles.health} data-tone={health.tone}>
            <span className={styles.light} aria-hidden="true" />
            {health.sentence}
          </span>
        }
      />
      <Tiles seen={seen} />
      <div className={styles.columns}>
        <div className={styles.wide}>
          <Charts range={chosen} onRange={(next) => void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, range: next === "3h" ? undefined : next })) as never })} />
        </div>
        <div className={styles.side}>
          <AttentionList entries={seen.attention} hasMore={seen.has_more_attention} />
          <NextHour density={seen.next_hour} />
        </div>
      </div>
    </>
  );
}

function Tiles({ seen }: { seen: OverviewShown }) {
  const { tiles } = words;
  const share = seen.slots > 0 ? Math.min(1, seen.running.count / seen.slots) : 0;
  const waiting = { count: seen.ready.count + seen.held.count, more: seen.ready.more || seen.held.more };
  return (
    <ul className={styles.tiles} aria-label={tiles.label}>
      <Tile label={tiles.waiting} to="/runs" q="state:ready,held" value={bounded(waiting)} hint={tiles.waitingHint(bounded(seen.ready), bounded(seen.held))} />
      <Tile label={tiles.running} to="/runs" q="state:running" value={bounded(seen.running)} hint={tiles.runningHint(seen.workers)} tone={seen.workers === 0 && waiting.count > 0 ? "bad" : undefined} />
      <Tile label={tiles.failed} to="/runs" q="state:failed since:1h" value={bounded(seen.failed)} hint={tiles.failedHint} tone={seen.failed.count > 0 ? "bad" : undefined} />
      <Tile
        label={tiles.oldest}
        to={seen.oldest_ready_queue ? `/queues/${encodeURIComponent(seen.oldest_ready_queue)}` : "/queues"}
        value={seen.oldest_ready_seconds === null ? text.none : roughly(Math.max(1, Math.round(seen.oldest_ready_seconds)))}
        hint={seen.oldest_ready_queue ? tiles.oldestHint(seen.oldest_ready_queue) : tiles.nothingWaits}
      />
      <Tile label={tiles.slots} to="/workers" value={seen.slots === 0 ? text.none : `${Math.round(share * 100)} %`} hint={seen.slots === 0 ? tiles.noSlots : tiles.slotsHint(number(seen.running.count), number(seen.slots))}>
        <span className={styles.gauge} aria-hidden="true">
          <span style={{ inlineSize: `${share * 100}%` }} />
        </span>
      </Tile>
      <Tile label={tiles.late} to="/jobs" value={bounded(seen.late_ticks)} hint={seen.late_ticks.count > 0 ? tiles.lateHint(duration(Math.round(seen.late_seconds ?? 0))) : tiles.onTime} tone={seen.late_ticks.count > 0 ? "bad" : undefined} />
    </ul>
  );
}

function Tile({ label, to, q, value, hint, tone, children }: { label: string; to: string; q?: string; value: string; hint: string; tone?: "bad"; children?: ReactNode }) {
  return (
    <li>
      <Link to={to as never} search={(q ? { q } : {}) as never} className={styles.tile} data-tone={tone}>
        <span className={styles.label}>{label}</span>
        <span className={styles.value}>{value}</span>
        <span className={styles.tileHint}>{hint}</span>
        {children}
      </Link>
    </li>
  );
}
