import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { DeadGroup, DeadGroupDetails, DeadLetter, JobShown, ReplayRequest } from "~/api/schema";
import { words } from "~/texts/dead";
import { curl, shellWord } from "../runs/commands";

export type Group = DeadGroup;
export type Letter = DeadLetter;

export interface GroupFilter {
  since?: string;
  task?: string;
  queue?: string;
  dismissed?: string;
}

const GROUPS_MAX = 200;
/** How far groups look back. */
export const LOOK_BACK_MS = 7 * 86_400_000;

export const groupsQuery = ({ since, task, queue, dismissed }: GroupFilter) =>
  queryOptions({
    queryKey: key("dead", "groups", since, task, queue, dismissed),
    queryFn: async () =>
      (await data(client.GET("/v1/dead-letters", { params: { query: { since, task, queue, dismissed: dismissed === "1", limit: GROUPS_MAX } } }))) as { items: Group[]; more: boolean; since: string },
    placeholderData: keepPreviousData,
  });

export const groupQuery = (name: string) =>
  queryOptions({ queryKey: key("dead", "group", name), queryFn: () => data(client.GET("/v1/dead-letters/groups/{name}", { params: { path: { name } } })) });

export const letterPage = async (group: string, isAll: boolean, after: string | undefined, signal: AbortSignal) =>
  (await data(client.GET("/v1/dead-letters", { params: { query: { group, replayed: isAll, dismissed: isAll, after: after ?? "", limit: 100 } }, signal }))) as { items: Letter[]; next: string | null };

export const replaysQuery = (group: string) =>
  queryOptions({ queryKey: key("dead", "replays", group), queryFn: async () => (await data(client.GET("/v1/dead-letters/replays", { params: { query: { group, limit: 5 } } }))).items });

export const replayQuery = (id: string) =>
  queryOptions({ queryKey: key("dead", "replay", id), queryFn: () => data(client.GET("/v1/dead-letters/replays/{reference}", { params: { path: { reference: id } } })) });

export const sendReplay = (body: Partial<ReplayRequest>) => data(client.POST("/v1/dead-letters/replay", { body: body as never }));
export const sendDismissal = (name: string, until: string) => data(client.POST("/v1/dead-letters/groups/{name}/dismiss", { params: { path: { name } }, body: { until } }));
export const sendRestore = (name: string) => data(client.POST("/v1/dead-letters/groups/{name}/restore", { params: { path: { name } } }));
export const sendNote = (name: string, note: string | null) => data(client.PUT("/v1/dead-letters/groups/{name}/note", { params: { path: { name } }, body: { note } }));
export const sendStop = (id: string) => data(client.POST("/v1/dead-letters/replays/{reference}/stop", { params: { path: { reference: id } } }));

/** The first line of a message, which may be of many. */
export function headline({ kind, message }: { kind: string | null; message: string | null }): string {
  const first = (message ?? "").trim().split("\n")[0] ?? "";
  return [kind, first].filter(Boolean).join(": ") || words.noMessage;
}

/** The stack of an error, if its task has sent one. */
export function stackOf(run: Pick<JobShown, "error">): string | null {
  const found = run.error && typeof run.error === "object" ? (run.error as { traceback?: unknown }).traceback : null;
  return typeof found === "string" && found.trim() !== "" ? found : null;
}

/** Where a group is looked after. Failures without an error are a group without a page. */
export const placeOf = ({ fingerprint, task }: Pick<Group, "fingerprint" | "task">): { to: string; search?: object } =>
  fingerprint === "" ? { to: "/runs", search: { q: `state:failed task:${task} since:7d` } } : { to: `/dead/${encodeURIComponent(fingerprint)}` };

export const groupCommands = ({ fingerprint }: DeadGroupDetails) => [
  { label: "foliot", command: `foliot dead replay --group ${shellWord(fingerprint)} --dry-run` },
  { label: "curl", command: curl("POST", "/v1/dead-letters/replay", { filter: { group: fingerprint }, canary: true }) },
];
