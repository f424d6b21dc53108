import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Series } from "~/api/schema";
import { ErrorNotice } from "~/components/ErrorNotice";
import { Segments } from "~/components/Segments";
import { Skeleton } from "~/components/Skeleton";
import { type ChartLine, TimeChart } from "~/components/TimeChart";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { compact } from "~/model/numbers";
import { duration, millis } from "~/model/times";
import { text } from "~/texts/en";
import { RANGES, type Range, seriesQuery } from "./queries";
import styles from "./OverviewPage.module.css";

const { charts: words } = text.overview;
const QUEUE_COLORS = ["--accent-solid", "--ready-solid", "--held-solid", "--scheduled-solid", "--waiting-solid"];
const QUANTILE_COLORS: Record<string, string> = { p50: "--ready-solid", p95: "--scheduled-solid" };

interface Chart {
  metric: Series["metric"];
  form: "bars" | "lines";
  title: (minutes: number) => string;
  tell: (value: number) => string;
  line: (name: string, index: number) => Omit<ChartLine, "values">;
}

const CHARTS: Chart[] = [
  { metric: "ended", form: "bars", title: words.perStep, tell: compact, line: (name) => ({ name, label: text.states[name as "failed"] ?? name, color: `--${name}-solid` }) },
  { metric: "wait", form: "lines", title: () => words.wait, tell: duration, line: (name) => ({ name, label: words.quantiles[name] ?? name, color: QUANTILE_COLORS[name] ?? "--accent-solid" }) },
  { metric: "ready", form: "lines", title: () => words.ready, tell: compact, line: (name, index) => ({ name, label: name, color: QUEUE_COLORS[index] ?? "--waiting-solid" }) },
];

/** Three charts with one cursor, of all queues or of one. A range that is dragged over opens its runs. */
export function Charts({ range, onRange, queue }: { range: Range; onRange: (range: Range) => void; queue?: string }) {
  const [cursor, setCursor] = useState<number | null>(null);
  const navigate = useNavigate();
  const brush = (from: number, to: number) =>
    void navigate({ to: "/runs" as never, search: { q: `${queue ? `queue:${queue} ` : ""}since:${new Date(from).toISOString()} until:${new Date(to).toISOString()}` } as never });
  return (
    <section className={styles.section} aria-label={words.label}>
      <div className={styles.sectionHead}>
        <h2>{words.label}</h2>
        <Segments label={words.range} value={range} onChange={(value) => onRange(value as Range)} options={Object.keys(RANGES).map((value) => ({ value, label: words.ranges[value] ?? value }))} />
      </div>
      <div className={styles.charts}>
        {CHARTS.map((chart) => (
          <OneChart key={chart.metric} chart={chart} range={range} queue={queue} cursor={cursor} onCursor={setCursor} onBrush={brush} />
        ))}
      </div>
      <p className={styles.hint}>{words.hint}</p>
    </section>
  );
}

function OneChart({ chart, range, queue, ...rest }: { chart: Chart; range: Range; queue?: string; cursor: number | null; onCursor: (index: number | null) => void; onBrush: (from: number, to: number) => void }) {
  const found = useQuery(seriesQuery(chart.metric, range, queue));
  useLiveRefresh(() => void found.refetch(), { every: 15_000 });
  if (found.error && !found.data) return <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={5} />;
  const { data } = found;
  const lines = data.lines.map((line, index) => ({ ...chart.line(line.name, index), values: line.values }));
  const shown = lines.filter((line, index) => index < 2 || chart.metric !== "ended" || line.values.some((value) => value));
  const points = Math.round((millis(data.until) - millis(data.since)) / 1000 / data.step);
  const empty = { ...chart.line("", 0), name: "", label: "", values: Array<null>(points).fill(null) };
  const title = queue && chart.metric === "ready" ? words.depth : chart.title(data.step / 60);
  return (
    <TimeChart
      title={title}
      label={words.chart(title)}
      lines={shown.length > 0 ? shown : [empty]}
      since={millis(data.since)}
      step={data.step * 1000}
      form={chart.form}
      tell={chart.tell}
      isWhole={chart.metric !== "wait"}
      isTime={chart.metric === "wait"}
      none={words.none}
      {...rest}
    />
  );
}
