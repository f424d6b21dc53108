import { queryOptions } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { CircuitState, TaskDetails, TaskShown } from "~/api/schema";
import type { IconName } from "~/components/Icon";
import type { Tone } from "~/model/states";
import type { Stop } from "../pauses/queries";
import { curl, shellWord } from "../runs/commands";

export type Task = TaskShown;

export const taskPage = (after: string | undefined, signal: AbortSignal) =>
  data(client.GET("/v1/tasks", { params: { query: { statistics: true, after: after ?? "", limit: 100 } }, signal }));

export const taskQuery = (name: string) =>
  queryOptions({ queryKey: key("task", name), queryFn: () => data(client.GET("/v1/tasks/{name}", { params: { path: { name } } })) });

/** Tasks whose last run failed, whether their circuit is open or not. */
export const circuitsQuery = () => queryOptions({ queryKey: key("circuits"), queryFn: async () => (await data(client.GET("/v1/circuits"))).items });

export type TaskCondition = "disabled" | "open" | "paused" | "unserved" | "failing" | "ready";

export const LOOKS: Record<TaskCondition, [Tone, IconName]> = {
  disabled: ["cancelled", "lock"],
  open: ["failed", "unplugged"],
  paused: ["held", "pause"],
  unserved: ["failed", "unplugged"],
  failing: ["held", "warning"],
  ready: ["succeeded", "check"],
};

/** The first thing that somebody should know about a task. */
export function conditionOf(task: Task, stops: readonly Stop[], circuits: readonly CircuitState[]): TaskCondition {
  if (task.is_disabled) return "disabled";
  if (stops.some((stop) => stop.kind === "circuit" && stop.name === task.name)) return "open";
  if (stops.some((stop) => stop.kind === "task" && stop.name === task.name)) return "paused";
  if (task.workers === 0) return "unserved";
  return circuits.some((circuit) => circuit.task === task.name) ? "failing" : "ready";
}

const FAILING_SHARE = 0.05;

/** Whether so many of its runs fail that somebody should look. */
export const isFailing = ({ ended, failed }: { ended: number; failed: number }): boolean => ended > 0 && failed / ended >= FAILING_SHARE;

export const placeOf = (name: string): string => `/tasks/${encodeURIComponent(name)}`;

export const taskCommands = ({ name }: TaskDetails) => [
  { label: "foliot", command: [`foliot tasks show ${shellWord(name)}`, `foliot pause --task ${shellWord(name)}`, `foliot resume --task ${shellWord(name)}`].join("\n") },
  { label: "curl", command: curl("GET", `/v1/tasks/${encodeURIComponent(name)}`) },
];
