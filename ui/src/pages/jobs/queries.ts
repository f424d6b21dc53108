import { queryOptions } from "@tanstack/react-query";
import { client, data, tagged } from "~/api/client";
import { key } from "~/api/queries";
import type { RecurringShown, Tick } from "~/api/schema";

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

export const nextQuery = (reference: string, count: number) =>
  queryOptions({
    queryKey: key("job", reference, "next", count),
    queryFn: () => data(client.GET("/v1/jobs/{reference}/next", { params: { path: { reference }, query: { count } } })),
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
