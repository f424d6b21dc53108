/** Sends requests to a Foliot server. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Address {
  /** Such as `https://foliot.internal`. Default: FOLIOT_URL, or the local server. */
  url?: string;
  /** Default: FOLIOT_TOKEN. */
  token?: string;
  /** Only for a token for all namespaces. */
  namespace?: string;
}

/** The server refused a request. `code` is stable; `field` names the field at fault. */
export class FoliotError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly field: string = "",
  ) {
    super(message);
    this.name = "FoliotError";
  }
}

/** No answer arrived, or one that passes. The server may have carried out the request. */
export class Unavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Unavailable";
  }
}

const PASSING = new Set([429, 500, 502, 503, 504]);
const ANSWER_MILLISECONDS = 30_000;

export class Connection {
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(address: Address = {}) {
    this.#url = (address.url ?? process.env["FOLIOT_URL"] ?? "http://127.0.0.1:8000").replace(/\/+$/, "");
    const token = address.token ?? process.env["FOLIOT_TOKEN"] ?? "";
    this.#headers = { "Content-Type": "application/json" };
    if (token) this.#headers["Authorization"] = `Bearer ${token}`;
    if (address.namespace) this.#headers["Foliot-Namespace"] = address.namespace;
  }

  /** Throws `FoliotError` for a refusal, and `Unavailable` for everything that passes. */
  async send<Answer>(
    method: string,
    path: string,
    body?: unknown,
    options: { extraMilliseconds?: number; signal?: AbortSignal; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const limit = AbortSignal.timeout(ANSWER_MILLISECONDS + (options.extraMilliseconds ?? 0));
    let answer: Response;
    let text: string;
    try {
      answer = await fetch(this.#url + path, {
        method,
        headers: { ...this.#headers, ...options.headers },
        body: body === undefined ? null : JSON.stringify(body),
        signal: options.signal ? AbortSignal.any([limit, options.signal]) : limit,
      });
      text = await answer.text();
    } catch (error) {
      throw new Unavailable(`${this.#url} does not answer: ${String((error as Error).cause ?? error)}`);
    }
    if (answer.ok) return JSON.parse(text) as Answer;
    if (PASSING.has(answer.status)) throw new Unavailable(`${this.#url} answered ${answer.status}: ${text}`);
    throw refusal(answer.status, text);
  }
}

function refusal(status: number, text: string): FoliotError {
  try {
    const problem = JSON.parse(text) as { detail: string; code: string; field?: string };
    return new FoliotError(problem.detail, status, problem.code, problem.field);
  } catch {
    return new FoliotError(`the server answered ${status}, unlike a Foliot server`, status, "foreign");
  }
}
