import { queryOptions } from "@tanstack/react-query";
import { client, data, tagged } from "~/api/client";
import { key } from "~/api/queries";
import type { QueueLimitsShown, QueueShown } from "~/api/schema";
import { curl, shellWord } from "../runs/commands";

export type Queue = QueueShown;

const DEPTHS_MAX = 50;

/** The same key as that of other pages, which ask for it now and then. */
export const queuesQuery = () => queryOptions({ queryKey: key("queues"), queryFn: () => data(client.GET("/v1/queues")) });

/** Ready runs over the last hours, of the deepest queues. */
export const depthsQuery = () =>
  queryOptions({
    queryKey: key("series", "ready", "3h", "depths"),
    queryFn: async () => {
      const found = await data(client.GET("/v1/series", { params: { query: { metric: "ready", since: "3h", step: 180, limit: DEPTHS_MAX } } }));
      return new Map(found.lines.map((line) => [line.name, line.values]));
    },
    staleTime: 10_000,
  });

export const keysQuery = (name: string) =>
  queryOptions({ queryKey: key("queue", name, "keys"), queryFn: () => data(client.GET("/v1/queues/{name}/keys", { params: { path: { name } } })) });

export const limitsQuery = (name: string) =>
  queryOptions({ queryKey: key("queue", name, "limits"), queryFn: () => tagged(client.GET("/v1/queues/{name}", { params: { path: { name } } })), gcTime: 0, staleTime: 0 });

export type Limits = Pick<QueueLimitsShown, "max_running" | "max_depth">;

export const sendLimits = (name: string, limits: Limits, etag: string | null) =>
  data(client.PATCH("/v1/queues/{name}", { params: { path: { name }, header: etag ? { "If-Match": etag } : {} }, body: limits }));

export const placeOf = (name: string): string => `/queues/${encodeURIComponent(name)}`;

export const queueCommands = ({ name, max_running, max_depth }: Queue) => [
  {
    label: "foliot",
    command: [
      `foliot explain ${shellWord(name)}`,
      `foliot pause --queue ${shellWord(name)}`,
      `foliot resume --queue ${shellWord(name)}`,
      `foliot queues set ${shellWord(name)} --max-running ${max_running ?? "none"} --max-depth ${max_depth ?? "none"}`,
    ].join("\n"),
  },
  { label: "curl", command: curl("PATCH", `/v1/queues/${encodeURIComponent(name)}`, { max_running, max_depth }) },
];
