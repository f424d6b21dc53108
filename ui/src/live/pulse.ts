import { useSyncExternalStore } from "react";
import { address, client, data, noteStatus } from "~/api/client";
import { currentNamespace } from "~/api/namespace";
import { asApiError } from "~/api/problems";
import { noteServerTime } from "~/model/clock";
import { readEvents } from "./sse";

export interface Notice {
  kind: "everything_paused" | "no_worker" | "shards_unowned" | "read_only" | "database_unavailable";
  text: string;
  reason?: string;
}

/** One small document a second about the whole namespace, from `GET /v1/pulse`. */
export interface Pulse {
  at: number;
  notices?: Notice[];
  changed?: { queues: string[]; tasks: string[]; jobs: string[]; runs: string[]; workflows: string[]; actions: unknown[]; more: boolean };
  [field: string]: unknown;
}

/** Whether something has changed since the pulse before. Without the stream, nobody knows. */
export function hasChanges({ changed }: Pulse): boolean {
  return !changed || changed.more || [changed.queues, changed.runs, changed.jobs, changed.workflows, changed.actions].some((list) => list.length > 0);
}

export type LiveState = "connecting" | "live" | "paused" | "lost";

interface Live {
  state: LiveState;
  pulse: Pulse | null;
  /** When something was last heard of the server. */
  heardAt: number | null;
}

const POLL_MS = 2_000;
const LOST_AFTER_MS = 6_000;

let live: Live = { state: "connecting", pulse: null, heardAt: null };
const listeners = new Set<() => void>();
const onChange = new Set<(pulse: Pulse, before: Pulse | null) => void>();

function update(change: Partial<Live>): void {
  live = { ...live, ...change };
  for (const listener of listeners) listener();
}

function hear(pulse: Pulse): void {
  if (live.state === "paused") return;
  const before = live.pulse;
  update({ state: "live", pulse, heardAt: Date.now() });
  for (const tell of onChange) tell(pulse, before);
}

export function useLive(): Live {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => live,
  );
}

/** Calls back when the pulse says that something may have changed. */
export function onPulse(tell: (pulse: Pulse, before: Pulse | null) => void): () => void {
  onChange.add(tell);
  return () => onChange.delete(tell);
}

export function toggleLive(): void {
  update({ state: live.state === "paused" ? "connecting" : "paused" });
}

/** Starts listening. The visible tab that holds the lock reads the stream, and tells all others. */
export function startPulse(): () => void {
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(`foliot-pulse ${address("")} ${currentNamespace() ?? ""}`);
  const stopped = new AbortController();
  let reading: AbortController | null = null;
  if (channel) channel.onmessage = (event: MessageEvent<Pulse>) => hear(event.data);
  const tell = (pulse: Pulse) => {
    hear(pulse);
    channel?.postMessage(pulse);
  };
  const watch = setInterval(() => {
    if (live.state === "live" && live.heardAt !== null && Date.now() - live.heardAt > LOST_AFTER_MS && !document.hidden) update({ state: "lost" });
  }, 1000);
  const lead = () => {
    if (reading || document.hidden || stopped.signal.aborted) return;
    const mine = new AbortController();
    reading = mine;
    const work = () => read(tell, mine.signal);
    if (navigator.locks) {
      navigator.locks.request(`foliot-pulse ${currentNamespace() ?? ""}`, { signal: mine.signal }, work).catch(() => undefined);
    } else void work();
  };
  const onVisibility = () => {
    if (document.hidden) {
      reading?.abort();
      reading = null;
    } else lead();
  };
  document.addEventListener("visibilitychange", onVisibility);
  lead();
  return () => {
    stopped.abort();
    reading?.abort();
    clearInterval(watch);
    document.removeEventListener("visibilitychange", onVisibility);
    channel?.close();
  };
}

async function read(tell: (pulse: Pulse) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const isStream = await stream(tell, signal);
    if (!isStream) await poll(tell, signal);
    await sleep(1000, signal);
  }
}

/** Reads the stream until it fails. False where the server has none, or no place for one more. */
async function stream(tell: (pulse: Pulse) => void, signal: AbortSignal): Promise<boolean> {
  try {
    await readEvents(
      "/v1/pulse",
      ({ data: body }) => {
        const told = JSON.parse(body) as Record<string, unknown>;
        const at = typeof told.at === "string" ? Date.parse(told.at) : Date.now();
        noteServerTime(at);
        tell({ ...told, at });
      },
      signal,
    );
    return true;
  } catch (error) {
    const { status } = asApiError(error);
    noteStatus(status);
    if (status === 404 || status === 429) return false;
    if (!signal.aborted) update({ state: live.state === "paused" ? "paused" : "lost" });
    return true;
  }
}

/** For a server without the stream: asks for the counts, and compares. */
async function poll(tell: (pulse: Pulse) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const stats = await data(client.GET("/v1/stats", { signal }));
      tell({ at: Date.now(), stats });
    } catch {
      if (signal.aborted) return;
      update({ state: live.state === "paused" ? "paused" : "lost" });
    }
    await sleep(POLL_MS, signal);
  }
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
