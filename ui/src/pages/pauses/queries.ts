import { queryOptions } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { Pause } from "~/api/schema";
import { words } from "~/texts/pauses";
import { curl, shellWord } from "../runs/commands";

export type PausedKind = Pause["kind"];

/** Whatever keeps runs from starting: a pause, or the open circuit of a task. */
export interface Stop {
  kind: PausedKind | "circuit";
  name: string;
  since: string | null;
  until: string | null;
  reason: string | null;
  actor: string | null;
  failures?: number;
  isProbing?: boolean;
}

const ORDER: Stop["kind"][] = ["everything", "circuit", "queue", "task", "job"];

export const stopsQuery = () =>
  queryOptions({
    queryKey: key("stops"),
    queryFn: async () => {
      const [pauses, circuits] = await Promise.all([data(client.GET("/v1/pauses")), data(client.GET("/v1/circuits"))]);
      const items: Stop[] = [
        ...pauses.items.map(({ kind, name, paused_at, until_at, reason, actor }) => ({ kind, name, since: paused_at, until: until_at, reason, actor })),
        ...circuits.items
          .filter((circuit) => circuit.open_until !== null)
          .map((circuit) => ({ kind: "circuit" as const, name: circuit.task, since: null, until: circuit.open_until, reason: null, actor: null, failures: circuit.failures, isProbing: circuit.probe_id !== null })),
      ];
      return { items: items.sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind) || (one.name < other.name ? -1 : 1)), more: pauses.more ?? false };
    },
  });

export interface Wishes {
  reason?: string;
  until?: string;
}

export function nameOf({ kind, name }: { kind: Stop["kind"]; name: string }): string {
  return kind === "everything" ? words.everything : name;
}

export function sendPause(kind: PausedKind, name: string, body: Wishes): Promise<unknown> {
  if (kind === "everything") return data(client.POST("/v1/pause", { body }));
  if (kind === "queue") return data(client.POST("/v1/queues/{name}/pause", { params: { path: { name } }, body }));
  if (kind === "task") return data(client.POST("/v1/tasks/{name}/pause", { params: { path: { name } }, body }));
  return data(client.POST("/v1/jobs/{reference}/pause", { params: { path: { reference: name } }, body }));
}

export function sendEnd(kind: Stop["kind"], name: string): Promise<unknown> {
  if (kind === "everything") return data(client.POST("/v1/resume", {}));
  if (kind === "queue") return data(client.POST("/v1/queues/{name}/resume", { params: { path: { name } } }));
  if (kind === "task") return data(client.POST("/v1/tasks/{name}/resume", { params: { path: { name } } }));
  if (kind === "circuit") return data(client.POST("/v1/circuits/{name}/close", { params: { path: { name } } }));
  return data(client.POST("/v1/jobs/{reference}/resume", { params: { path: { reference: name } } }));
}

const PATHS: Record<Stop["kind"], (name: string) => string> = {
  everything: () => "/v1/resume",
  queue: (name) => `/v1/queues/${encodeURIComponent(name)}/resume`,
  task: (name) => `/v1/tasks/${encodeURIComponent(name)}/resume`,
  job: (name) => `/v1/jobs/${encodeURIComponent(name)}/resume`,
  circuit: (name) => `/v1/circuits/${encodeURIComponent(name)}/close`,
};

export function endCommands({ kind, name }: Stop) {
  const words = kind === "everything" ? "--everything" : kind === "job" ? shellWord(name) : `--${kind} ${shellWord(name)}`;
  return [
    { label: "foliot", command: `foliot resume ${words}` },
    { label: "curl", command: curl("POST", PATHS[kind](name)) },
  ];
}

export const placeOf = ({ kind, name }: Stop): string | null =>
  kind === "everything" ? null : `/${kind === "queue" ? "queues" : kind === "job" ? "jobs" : "tasks"}/${encodeURIComponent(name)}`;
