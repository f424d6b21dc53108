import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { UpcomingJob } from "~/api/schema";
import { useKeys } from "~/app/keys";
import { useZoneChoice } from "~/app/useZone";
import { Button, IconButton } from "~/components/Button";
import { EmptyState, NothingFits, Unavailable } from "~/components/EmptyState";
import { Select } from "~/components/Field";
import { PageHeader } from "~/components/PageHeader";
import { Panel } from "~/components/Panel";
import { Segments } from "~/components/Segments";
import { Skeleton } from "~/components/Skeleton";
import { type Column, Table } from "~/components/Table";
import { Tags } from "~/components/Tag";
import { Duration, Time } from "~/components/Time";
import { useTip } from "~/components/Tip";
import { useLiveRefresh } from "~/live/useLiveRefresh";
import { grouped, rangeOf, shifted, type Span } from "~/model/agenda";
import { serverNow } from "~/model/clock";
import { number } from "~/model/numbers";
import { millis, zoneName } from "~/model/times";
import { words } from "~/texts/agenda";
import { FireStrip, StripHead } from "./FireStrip";
import { Forecast } from "./Forecast";
import styles from "./AgendaPage.module.css";

const HOUR = 3_600_000;
const GROUPINGS = ["job", "queue", "tag"] as const;

interface Search {
  span?: string;
  from?: string;
  hours?: string;
  by?: string;
  queue?: string;
  tag?: string;
}

export function AgendaPage() {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const set = (change: Search) => void navigate({ to: "." as never, replace: true, resetScroll: false, search: ((before: object) => ({ ...before, ...change })) as never });
  const isUtc = zoneName(useZoneChoice()) === "UTC";
  const span: Span = search.span === "week" ? "week" : "day";
  const by = GROUPINGS.find((one) => one === search.by) ?? "job";
  const hours = Number(search.hours) >= 1 && Number(search.hours) <= 744 ? Math.floor(Number(search.hours)) : null;
  const range = rangeOf(search.from, span, hours, serverNow(), isUtc);
  const asked = { hours: range.hours, ...(range.from === null ? {} : { since: new Date(range.from).toISOString() }), ...(search.queue ? { queue: search.queue } : {}), ...(search.tag ? { tag: search.tag } : {}) };
  const found = useQuery({ queryKey: key("upcoming", asked), queryFn: () => data(client.GET("/v1/upcoming", { params: { query: asked } })), staleTime: 10_000, placeholderData: (before) => before });
  // What is offered does not shrink when something is chosen.
  const all = useQuery({ queryKey: key("upcoming", "names", range.hours, range.from), queryFn: () => data(client.GET("/v1/upcoming", { params: { query: { hours: asked.hours, ...(asked.since ? { since: asked.since } : {}) } } })), staleTime: 60_000, enabled: Boolean(search.queue || search.tag), placeholderData: (before) => before });
  useLiveRefresh(() => void found.refetch(), { every: 15_000 });
  const move = (step: 1 | -1) => {
    const next = shifted(range, span, step, serverNow(), isUtc);
    set({ from: next === null ? undefined : new Date(next).toISOString(), hours: undefined });
  };
  useKeys([
    { label: words.later, icon: "chevron", run: () => move(1) },
    { label: words.now, icon: "clock", run: () => set({ from: undefined, hours: undefined }) },
  ]);
  if (found.error && !found.data) return <Unavailable error={found.error} onRetry={() => void found.refetch()} />;
  const named = ((search.queue || search.tag ? all.data : found.data) ?? found.data)?.jobs ?? [];
  const choices = (names: string[], nothing: string, chosen?: string) => [
    { value: "", label: nothing },
    ...[...new Set([...names, ...(chosen ? [chosen] : [])])].sort().map((value) => ({ value, label: value })),
  ];
  const shown = found.data;
  const isFiltered = Boolean(search.queue || search.tag);
  return (
    <>
      <PageHeader title={words.title} lead={words.lead} />
      <div className={styles.controls}>
        <Segments label={words.span} value={hours === null ? span : ""} onChange={(value) => set({ span: value === "day" ? undefined : value, hours: undefined })} options={[{ value: "day", label: words.spans.day }, { value: "week", label: words.spans.week }]} />
        <span className={styles.moves}>
          <IconButton icon="chevron" className={styles.back} label={words.earlier} blocked={range.from === null ? words.now : null} onClick={() => move(-1)} />
          <Button size="small" kind="quiet" onClick={() => set({ from: undefined, hours: undefined })}>
            {words.now}
          </Button>
          <IconButton icon="chevron" label={words.later} onClick={() => move(1)} />
        </span>
        {shown && (
          <span className={styles.when}>
            <Time at={shown.since} form="absolute" precision="minute" withoutZone />
            {" – "}
            <Time at={shown.until} form="absolute" precision="minute" />
          </span>
        )}
        <span className={styles.filters}>
          <Select aria-label={words.queue} value={search.queue ?? ""} onChange={(event) => set({ queue: event.target.value || undefined })} options={choices(named.map((job) => job.queue), words.allQueues, search.queue)} />
          <Select aria-label={words.tag} value={search.tag ?? ""} onChange={(event) => set({ tag: event.target.value || undefined })} options={choices(named.flatMap((job) => job.tags), words.allTags, search.tag)} />
          <Segments label={words.by} value={by} onChange={(value) => set({ by: value === "job" ? undefined : value })} options={GROUPINGS.map((value) => ({ value, label: words.groupings[value] }))} />
        </span>
      </div>
      {!shown ? (
        <Skeleton lines={8} />
      ) : shown.jobs.length === 0 ? (
        isFiltered ? (
          <NothingFits what={words.what} onClear={() => set({ queue: undefined, tag: undefined })} />
        ) : (
          <EmptyState icon="agenda" title={words.emptyTitle}>
            <p>{words.emptyHint}</p>
          </EmptyState>
        )
      ) : (
        <div aria-busy={found.isPlaceholderData} className={found.isPlaceholderData ? styles.old : undefined}>
          <Forecast found={shown} onBrush={(from, to) => set({ from: new Date(from).toISOString(), hours: String(Math.max(1, Math.round((to - from) / HOUR))) })} />
          {shown.more && <p className={styles.more}>{words.more}</p>}
          {by === "job" ? (
            <Fires jobs={shown.jobs} name="agenda" label={words.title} since={millis(shown.since)} until={millis(shown.until)} />
          ) : (
            grouped(shown.jobs, by).map((group) => (
              <Panel key={group.name ?? ""} title={group.name ?? words.untagged} hint={words.group(group.jobs.length, group.ticks)} isFlush>
                <Fires jobs={group.jobs} name="agenda" label={group.name ?? words.untagged} since={millis(shown.since)} until={millis(shown.until)} />
              </Panel>
            ))
          )}
        </div>
      )}
    </>
  );
}

function Fires({ jobs, name, label, since, until }: { jobs: readonly UpcomingJob[]; name: string; label: string; since: number; until: number }) {
  const took = useTip(words.tookHint);
  const columns = useMemo<Column<UpcomingJob>[]>(
    () => [
      {
        id: "job",
        label: words.columns.job,
        width: "minmax(11rem, 1fr)",
        card: "title",
        isFixed: true,
        cell: (job) => (
          <span className={styles.job}>
            <Link to={`/jobs/${encodeURIComponent(job.name)}` as never} data-link className={styles.name}>
              {job.name}
            </Link>
            <Tags names={job.tags} most={2} />
          </span>
        ),
      },
      { id: "schedule", label: words.columns.schedule, width: "minmax(9rem, 0.8fr)", from: 1040, cell: (job) => <span className="quiet">{job.schedule_words.charAt(0).toUpperCase() + job.schedule_words.slice(1)}</span> },
      { id: "strip", label: <StripHead since={since} until={until} />, width: "minmax(12rem, 2fr)", from: 600, card: "none", cell: (job) => <FireStrip job={job} since={since} until={until} /> },
      { id: "count", label: words.columns.count, width: "4.5rem", align: "end", isLabelled: true, cell: (job) => `${job.is_estimate ? "~" : ""}${number(job.count)}` },
      { id: "took", label: <span {...took}>{words.columns.took}</span>, width: "5rem", align: "end", from: 860, cell: (job) => <Duration seconds={job.seconds} /> },
      { id: "next", label: words.columns.next, width: "6.5rem", align: "end", card: "side", cell: (job) => <Time at={job.fires[0]} jobZone={job.timezone} /> },
    ],
    [since, until],
  );
  return <Table<UpcomingJob> label={label} name={name} rows={jobs} columns={columns} idOf={(job) => job.name} linkOf={(job) => ({ to: `/jobs/${encodeURIComponent(job.name)}` })} />;
}
