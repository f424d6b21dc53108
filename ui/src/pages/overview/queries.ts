import { queryOptions } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { Series } from "~/api/schema";

export const overviewQuery = () => queryOptions({ queryKey: key("overview"), queryFn: () => data(client.GET("/v1/overview")) });

/** The ranges of the charts, each with the seconds of a point. */
export const RANGES = { "1h": 60, "3h": 60, "12h": 300, "7d": 3600 } as const;
export type Range = keyof typeof RANGES;

export const seriesQuery = (metric: Series["metric"], range: Range, queue?: string) =>
  queryOptions({
    queryKey: key("series", metric, range, queue),
    queryFn: () => data(client.GET("/v1/series", { params: { query: { metric, since: range, step: RANGES[range], queue } } })),
    staleTime: 10_000,
    placeholderData: (before) => before,
  });
