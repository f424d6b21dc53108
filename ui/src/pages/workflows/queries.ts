import { queryOptions, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { client, data } from "~/api/client";
import { key } from "~/api/queries";
import type { GraphStep, RedrivePlan, StepNow, WorkflowGrid, WorkflowListed } from "~/api/schema";
import { useLiveRefresh } from "~/live/useLiveRefresh";

export type Workflow = WorkflowListed;
export type Structure = Required<Pick<GraphStep, "key" | "task">> & { after: number[]; rule: string; when: string | null; queue: string | null; is_map: boolean; is_workflow: boolean; is_teardown: boolean; awaits_signal: boolean };
export type Grid = WorkflowGrid;
export type { RedrivePlan, StepNow };

const named = (reference: string) => ({ params: { path: { reference } } });

export const workflowPage = (query: { state?: string; name?: string }, after: string | undefined, signal: AbortSignal) =>
  data(client.GET("/v1/workflows", { params: { query: { ...query, limit: 50, ...(after ? { after } : {}) } }, signal }));

export const gridPage = (name: string, after: string | undefined, signal?: AbortSignal) =>
  data(client.GET("/v1/workflows/grid", { params: { query: { name, ...(after ? { after } : {}) } }, signal }));

/** Never changes, so it is asked for once. */
const graphQuery = (reference: string) =>
  queryOptions({
    queryKey: key("workflow", reference, "graph"),
    queryFn: async (): Promise<Structure[]> => {
      const found = await data(client.GET("/v1/workflows/{reference}/graph", named(reference)));
      return found.steps.map((step) => ({
        key: step.key,
        task: step.task,
        after: step.after ?? [],
        rule: step.rule ?? "all_success",
        when: step.when ?? null,
        queue: step.queue ?? null,
        is_map: step.is_map ?? false,
        is_workflow: step.is_workflow ?? false,
        is_teardown: step.is_teardown ?? false,
        awaits_signal: step.awaits_signal ?? false,
      }));
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

export const redrivePlanQuery = (reference: string) =>
  queryOptions({
    queryKey: key("workflow", reference, "redrive"),
    queryFn: async () => (await data(client.POST("/v1/workflows/{reference}/redrive", { ...named(reference), body: { dry_run: true } }))) as RedrivePlan,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

export interface WorkflowLook {
  workflow: Workflow;
  steps: Structure[];
  /** The latest run of each step, at its place. */
  now: (StepNow | undefined)[];
}

interface Known {
  workflow: Workflow;
  byKey: Map<string, StepNow>;
}

/** A workflow with its structure, read once, and its states, of which only changes are read. */
export function useWorkflow(reference: string): { look: WorkflowLook | undefined; error: unknown; reload: () => void } {
  const graph = useQuery(graphQuery(reference));
  const [known, setKnown] = useState<Known>();
  const [error, setError] = useState<unknown>(null);
  const reading = useRef({ cursor: "", isBusy: false, isAgain: false, runId: "", byKey: new Map<string, StepNow>(), reference });

  const read = useCallback(async (): Promise<void> => {
    const own = reading.current;
    if (own.isBusy) {
      own.isAgain = true;
      return;
    }
    own.isBusy = true;
    try {
      const found = await data(client.GET("/v1/workflows/{reference}/states", { params: { path: { reference }, query: own.cursor ? { since: own.cursor } : {} } }));
      if (own !== reading.current) return;
      if (!found.is_whole && own.runId !== found.workflow.run_id) {
        // It was run again meanwhile.
        own.cursor = "";
        own.isAgain = true;
      } else {
        if (found.is_whole) own.byKey = new Map();
        else if (found.steps.length > 0) own.byKey = new Map(own.byKey);
        for (const step of found.steps) own.byKey.set(step.key, step);
        own.cursor = found.cursor;
        own.runId = found.workflow.run_id;
        setKnown({ workflow: found.workflow, byKey: own.byKey });
      }
      setError(null);
    } catch (problem) {
      if (own === reading.current) setError(problem);
    } finally {
      own.isBusy = false;
      if (own.isAgain && own === reading.current) {
        own.isAgain = false;
        void read();
      }
    }
  }, [reference]);

  useEffect(() => {
    reading.current = { cursor: "", isBusy: false, isAgain: false, runId: "", byKey: new Map(), reference };
    setKnown(undefined);
    void read();
  }, [reference, read]);
  useLiveRefresh(() => void read(), { every: 1_000, isOn: !known?.workflow.finished_at });

  const reload = useCallback(() => {
    reading.current.cursor = "";
    void read();
  }, [read]);
  const look = useMemo(() => {
    if (!known || !graph.data) return undefined;
    return { workflow: known.workflow, steps: graph.data, now: graph.data.map((step) => known.byKey.get(step.key)) };
  }, [known, graph.data]);
  return { look, error: known ? graph.error : (error ?? graph.error), reload };
}
