import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "./schema";
import { ApiError, problemOf } from "./problems";
import { currentNamespace } from "./namespace";

const meta = typeof document === "undefined" ? null : document.querySelector<HTMLMetaElement>('meta[name="foliot-prefix"]');
/** The path that a reverse proxy puts in front of /ui/ and /v1/. */
export const PREFIX = meta?.content ?? "";

const TIMEOUT_MS = 30_000;
/** Sent to the window when an answer says that nobody is signed in any more. */
export const SIGNED_OUT = "foliot-signed-out";

export function noteStatus(status: number): void {
  if (status === 401) window.dispatchEvent(new Event(SIGNED_OUT));
}

const headers: Middleware = {
  onRequest({ request }) {
    const namespace = currentNamespace();
    if (namespace) request.headers.set("Foliot-Namespace", namespace);
    if (request.method !== "GET") request.headers.set("Foliot-CSRF", "1");
    return request;
  },
  onResponse({ response }) {
    noteStatus(response.status);
    return undefined;
  },
};

/** Fails with an ApiError that says what happened, also when no server answers. */
async function send(request: Request): Promise<Response> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    return await fetch(new Request(request, { signal, credentials: "same-origin" }));
  } catch (error) {
    if (request.signal.aborted) throw error;
    throw ApiError.unreachable();
  }
}

export const client = createClient<paths>({ baseUrl: PREFIX || globalThis.location?.origin, fetch: send });
client.use(headers);

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The body of a good answer. Throws an ApiError for any other: `await data(client.GET("/v1/stats"))`. */
export async function data<T>(asking: Promise<Answer<T>>): Promise<T> {
  const answer = await asking;
  if (!answer.response.ok) throw problemOf(answer.response, answer.error);
  return answer.data as T;
}

/** A good answer's body with its ETag. */
export async function tagged<T>(asking: Promise<Answer<T>>): Promise<{ data: T; etag: string | null }> {
  const answer = await asking;
  if (!answer.response.ok) throw problemOf(answer.response, answer.error);
  return { data: answer.data as T, etag: answer.response.headers.get("etag") };
}

/** The address of a stream or download, for EventSource and links. */
export function address(path: string, query: Record<string, string | number | undefined> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  const text = parameters.toString();
  return `${PREFIX}${path}${text ? `?${text}` : ""}`;
}
