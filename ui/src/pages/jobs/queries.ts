import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, data, tagged } from "~/api/client";
import { key } from "~/api/queries";
import type { RecurringShown, Tick } from "~/api/schema";
import { serverNow } from "~/model/clock";
import { SPANS, type Span } from "~/model/tickTimeline";

export type Job = RecurringShown;
export type JobTick = Tick;

const named = (reference: string) => ({ params: { path: { reference } } });

export const jobPage = (query: { tag?: string }, after: string | undefined, signal: AbortSignal) =>
  data(client.GET("/v1/jobs", { params: { query: { ...query, limit: 200, ...(after ? { after } : {}) } }, signal }));

/** With its ETag, for changes that must not overwrite those of others. */
export const jobQuery = (reference: string) =>
  queryOptions({
    queryKey: key("job", reference),
    queryFn: async () => {
      const found = await tagged(client.GET("/v1/jobs/{reference}", named(reference)));
      return { job: found.data as Job, etag: found.etag };
    },
  });

export const ticksQuery = (reference: string, limit: number) =>
  queryOptions({
    queryKey: key("job", reference, "ticks", limit),
    queryFn: async () => (await data(client.GET("/v1/jobs/{reference}/ticks", { params: { path: { reference }, query: { limit } } }))).items,
    staleTime: 4_000,
  });

/** What became of the ticks of a time, in bars that are about eight pixels wide. Without an end, up to now. */
export const stripQuery = (reference: string, span: Span, until: number | null) =>
  queryOptions({
    queryKey: key("job", reference, "strip", span, until),
    queryFn: () => {
      const end = until ?? serverNow();
      const query = { since: new Date(end - SPANS[span]).toISOString(), until: new Date(end).toISOString(), cells: CELLS[span] };
      return data(client.GET("/v1/jobs/{reference}/ticks/strip", { params: { path: { reference }, query } }));
    },
    staleTime: 1_500,
    placeholderData: keepPreviousData,
  });

const CELLS: Record<Span, number> = { hour: 120, day: 96, week: 84, month: 120, year: 122 };

/** One page of the ticks of a time, the latest first. */
export const ticksWithin = (reference: string, since: number, until: number, after: string | undefined, limit: number) => {
  const query = { since: new Date(since).toISOString(), until: new Date(until).toISOString(), limit, ...(after ? { after } : {}) };
  return data(client.GET("/v1/jobs/{reference}/ticks", { params: { path: { reference }, query } }));
};

export const durationsQuery = (reference: string) =>
  queryOptions({
    queryKey: key("job", reference, "durations"),
    queryFn: () => data(client.GET("/v1/jobs/{reference}/durations", { params: { path: { reference }, query: { limit: 100 } } })),
    staleTime: 10_000,
  });

export const nextQuery = (reference: string, count: number) =>
  queryOptions({
    queryKey: key("job", reference, "next", count),
    queryFn: () => data(client.GET("/v1/jobs/{reference}/next", { params: { path: { reference }, query: { count, excluded: true } } })),
    staleTime: 10_000,
  });

export interface ScheduleShown {
  cron?: string | string[];
  every?: string;
  times?: string[];
  after?: string[];
  timezone?: string;
  dst_gap?: string;
  dst_fold?: string;
  start_at?: string;
  end_at?: string;
  calendar?: string;
  on_excluded?: string;
  jitter_seconds?: number;
  overlap?: string;
  catchup?: string;
  catchup_window_seconds?: number;
  catchup_max?: number;
}

export function scheduleOf(job: Job): ScheduleShown {
  return (job.schedule ?? {}) as ScheduleShown;
}

/** The zone of a job; a schedule by period has none. */
export function zoneOf(job: Job): string | null {
  const { timezone, cron, times } = scheduleOf(job);
  return cron || times ? (timezone ?? "UTC") : null;
}
