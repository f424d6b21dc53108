import { PREFIX } from "~/api/client";
import { currentNamespace } from "~/api/namespace";
import { ApiError, problemOf } from "~/api/problems";

export interface ServerEvent {
  event: string;
  data: string;
  id: string | null;
}

/** Reads server-sent events until the stream ends. EventSource can't name the namespace, or tell why it failed. */
export async function readEvents(path: string, onEvent: (event: ServerEvent) => void, signal: AbortSignal, lastEventId?: string): Promise<void> {
  const namespace = currentNamespace();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (namespace) headers["Foliot-Namespace"] = namespace;
  if (lastEventId) headers["Last-Event-ID"] = lastEventId;
  let answer: Response;
  try {
    answer = await fetch(`${PREFIX}${path}`, { signal, headers });
  } catch (error) {
    if (signal.aborted) throw error;
    throw ApiError.unreachable();
  }
  if (!answer.ok || !answer.body) throw problemOf(answer, await answer.json().catch(() => null));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = eventOf(block);
      if (event) onEvent(event);
    }
  }
}

export function eventOf(block: string): ServerEvent | null {
  const event: ServerEvent = { event: "message", data: "", id: null };
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event.event = value;
    else if (field === "data") data.push(value);
    else if (field === "id") event.id = value;
  }
  if (data.length === 0) return null;
  event.data = data.join("\n");
  return event;
}
