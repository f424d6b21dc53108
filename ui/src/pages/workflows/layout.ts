import type { Layout } from "~/model/layeredLayout";
import address from "./layout.worker.ts?worker&url";
import type { LayoutAnswer, LayoutRequest } from "./layout.worker";

interface Policy {
  createScriptURL: (url: string) => string;
}
interface Policies {
  createPolicy: (name: string, rules: Policy) => Policy;
}

let worker: Worker | undefined;
let last = 0;
const waiting = new Map<number, { done: (layout: Layout) => void; failed: (error: Error) => void }>();

/** The one address that the page's policy lets run as a worker: this one. */
function trusted(): string {
  const types = (globalThis as { trustedTypes?: Policies }).trustedTypes;
  const own = new URL(address, location.href).href;
  return types?.createPolicy("foliot", { createScriptURL: () => own }).createScriptURL(own) ?? own;
}

function start(): Worker {
  const started = new Worker(trusted(), { type: "module", name: "layout" });
  started.onmessage = ({ data: { id, ...found } }: MessageEvent<LayoutAnswer>) => {
    waiting.get(id)?.done(found);
    waiting.delete(id);
  };
  started.onerror = (event) => {
    for (const { failed } of waiting.values()) failed(new Error(event.message || "the layout failed"));
    waiting.clear();
  };
  return started;
}

/** Places the nodes of a graph, away from the page's own thread. */
export function layoutOf(after: number[][]): Promise<Layout> {
  worker ??= start();
  const id = ++last;
  return new Promise((done, failed) => {
    waiting.set(id, { done, failed });
    worker?.postMessage({ id, after } satisfies LayoutRequest);
  });
}
