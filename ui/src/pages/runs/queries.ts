import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, data, PREFIX } from "~/api/client";
import { currentNamespace } from "~/api/namespace";
import { problemOf } from "~/api/problems";
import { key } from "~/api/queries";
import type { JobShown, RunListed } from "~/api/schema";
import type { Bucket } from "~/components/Histogram";
import type { RunQuery } from "~/model/runFilter";

export type Run = RunListed;
export type WholeRun = JobShown;

/** A GET with parameters that may repeat. */
export async function ask<T>(path: string, query: RunQuery, signal?: AbortSignal): Promise<T> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, one);
  const namespace = currentNamespace();
  const answer = await fetch(`${PREFIX}${path}?${parameters.toString()}`, { signal, headers: namespace ? { "Foliot-Namespace": namespace } : {} });
  const body: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw problemOf(answer, body);
  return body as T;
}

export interface RunPage {
  items: Run[];
  next: string | null;
  since?: string | null;
  is_partial?: boolean;
}

export const runPage = (query: RunQuery, after: string | undefined, signal: AbortSignal, limit = 100) =>
  ask<RunPage>("/v1/runs", { ...query, limit: String(limit), ...(after ? { after } : {}) }, signal);

export interface FacetValue {
  value: string;
  name: string;
  count: number;
}

export const FACETS = ["state", "queue", "task", "job", "tag", "worker", "error"] as const;
export type FacetName = (typeof FACETS)[number];
export type Facets = { count: number; more: boolean } & Record<FacetName, FacetValue[]>;

export const facetsQuery = (query: RunQuery) =>
  queryOptions({ queryKey: key("runs", "facets", query), queryFn: ({ signal }) => ask<Facets>("/v1/runs/facets", query, signal), staleTime: 5_000, retry: false, placeholderData: keepPreviousData });

interface RunHistogram {
  buckets: { begin: string; end: string; states: Bucket["counts"]; is_estimate: boolean }[];
}

export const histogramQuery = (query: RunQuery, buckets: number) =>
  queryOptions({
    queryKey: key("runs", "histogram", query, buckets),
    queryFn: async ({ signal }): Promise<Bucket[]> => {
      const found = await ask<RunHistogram>("/v1/runs/histogram", { ...query, buckets: String(buckets) }, signal);
      return found.buckets.map((bucket) => ({ begin: Date.parse(bucket.begin), end: Date.parse(bucket.end), counts: bucket.states }));
    },
    staleTime: 5_000,
    retry: false,
    placeholderData: keepPreviousData,
  });

export const runQueryOf = (id: string) =>
  queryOptions({ queryKey: key("run", id), queryFn: () => data(client.GET("/v1/runs/{reference}", { params: { path: { reference: id } } })) });
export const attemptsQuery = (id: string) =>
  queryOptions({ queryKey: key("run", id, "attempts"), queryFn: () => data(client.GET("/v1/runs/{reference}/attempts", { params: { path: { reference: id } } })) });
export const explainQuery = (reference: string) =>
  queryOptions({ queryKey: key("explain", reference), queryFn: () => data(client.GET("/v1/explain/{reference}", { params: { path: { reference } } })) });
export const workersQuery = () => queryOptions({ queryKey: key("workers"), queryFn: () => data(client.GET("/v1/workers")), staleTime: 5_000 });
export const queuesQuery = () => queryOptions({ queryKey: key("queues"), queryFn: () => data(client.GET("/v1/queues")), staleTime: 5_000 });

/** How a run is called: by its name, else by its task. */
export function nameOfRun(run: Pick<Run, "name" | "task">): string {
  return run.name ?? run.task;
}
