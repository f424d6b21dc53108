/** The slots of a worker as cells, by queue. */

export interface SlotRun {
  id: string;
  queue: string;
}

export interface SlotWorker<Run extends SlotRun> {
  slots: number;
  running: number;
  left_running: number;
  queues: Record<string, number>;
  runs?: Run[] | null;
}

export type Slot<Run> = { kind: "run"; run: Run } | { kind: "elsewhere" | "left" | "free" };

export interface SlotGroup<Run> {
  queue: string;
  size: number;
  cells: Slot<Run>[];
  /** Slots that are not shown, because there are too many. */
  rest: number;
}

/** Runs fill the slots of their queue. What is not known by queue, runs of other namespaces and functions that were left running, takes places that are free. */
export function slotGroups<Run extends SlotRun>(worker: SlotWorker<Run>, most = 120): SlotGroup<Run>[] {
  const runs = worker.runs ?? [];
  let elsewhere = Math.max(0, worker.running - runs.length);
  let left = Math.max(0, worker.left_running);
  return Object.entries(worker.queues)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([queue, size]) => {
      const cells: Slot<Run>[] = runs.filter((run) => run.queue === queue).map((run) => ({ kind: "run", run }));
      const fill = (kind: "elsewhere" | "left", wanted: number) => {
        const count = Math.max(0, Math.min(wanted, size - cells.length));
        for (let index = 0; index < count; index += 1) cells.push({ kind });
        return wanted - count;
      };
      left = fill("left", left);
      elsewhere = fill("elsewhere", elsewhere);
      while (cells.length < size && cells.length < most) cells.push({ kind: "free" });
      return { queue, size, cells: cells.slice(0, most), rest: Math.max(0, size - most) };
    });
}

/** Drained, and nothing is in its slots. */
export function isSafeToStop(worker: { health: string; draining_at: string | null; running: number; left_running: number }): boolean {
  return worker.health !== "gone" && worker.draining_at !== null && worker.running === 0 && worker.left_running === 0;
}

/** Every label with the number of workers that have it, the most common first. */
export function labelCounts(workers: readonly { labels: Record<string, string> }[]): { name: string; value: string; count: number }[] {
  const found = new Map<string, { name: string; value: string; count: number }>();
  for (const worker of workers)
    for (const [name, value] of Object.entries(worker.labels)) {
      const key = JSON.stringify([name, value]);
      const one = found.get(key) ?? { name, value, count: 0 };
      one.count += 1;
      found.set(key, one);
    }
  return [...found.values()].sort((one, other) => other.count - one.count || (`${one.name}=${one.value}` < `${other.name}=${other.value}` ? -1 : 1));
}
