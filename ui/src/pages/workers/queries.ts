import { queryOptions } from "@tanstack/react-query";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { WorkerDetails, WorkerShown } from "~/api/schema";
import { isSafeToStop } from "~/model/slots";
import type { Tone } from "~/model/states";

export type Worker = WorkerShown | WorkerDetails;

export const workersWithRuns = () =>
  queryOptions({ queryKey: key("workers", "runs"), queryFn: async () => (await data(client.GET("/v1/workers", { params: { query: { runs: true } } }))).items });

export const goneWorkers = () =>
  queryOptions({ queryKey: key("workers", "gone"), queryFn: async () => (await data(client.GET("/v1/workers/gone"))).items });

export const workerQuery = (id: string) =>
  queryOptions({ queryKey: key("worker", id), queryFn: () => data(client.GET("/v1/workers/{reference}", { params: { path: { reference: id } } })) });

export type Condition = "healthy" | "late" | "draining" | "safe" | "left" | "died";

export const TONE: Record<Condition, Tone> = { healthy: "succeeded", late: "failed", draining: "held", safe: "ready", left: "cancelled", died: "failed" };

export function conditionOf(worker: Worker): Condition {
  if (worker.health === "gone") return "gone" in worker && worker.gone?.is_dead ? "died" : "left";
  if (worker.health === "late") return "late";
  return isSafeToStop(worker) ? "safe" : worker.health;
}
