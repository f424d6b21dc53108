export type ProblemKind = "unreachable" | "not_found" | "forbidden" | "signed_out" | "invalid" | "changed" | "busy" | "server";

interface ProblemDocument {
  detail?: string;
  code?: string;
  field?: string;
  request_id?: string;
  start?: number;
  end?: number;
}

/** An answer that is no success, or no answer at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    readonly code: string,
    readonly field: string | null = null,
    readonly requestId: string | null = null,
    readonly retryAfter: number | null = null,
    /** The part of a cron expression that is wrong. */
    readonly place: readonly [number, number] | null = null,
  ) {
    super(detail);
    this.name = "ApiError";
  }

  static unreachable(): ApiError {
    return new ApiError(0, "", "unreachable");
  }

  get kind(): ProblemKind {
    if (this.status === 0) return "unreachable";
    if (this.status === 401) return "signed_out";
    if (this.status === 403) return "forbidden";
    if (this.status === 404) return "not_found";
    if (this.status === 409 || this.status === 412) return "changed";
    if (this.status === 429 || this.status === 503) return "busy";
    return this.status >= 500 ? "server" : "invalid";
  }

  /** Whether the same request may succeed a moment later. */
  get isPassing(): boolean {
    return this.kind === "unreachable" || this.kind === "busy" || this.kind === "server";
  }
}

export function problemOf(response: Response, body: unknown): ApiError {
  const told: ProblemDocument = body && typeof body === "object" ? body : {};
  const after = Number(response.headers.get("retry-after"));
  return new ApiError(
    response.status,
    told.detail || `The server answered with ${response.status}.`,
    told.code || "unknown",
    told.field || null,
    told.request_id || response.headers.get("x-request-id"),
    after > 0 ? after : null,
    typeof told.start === "number" && typeof told.end === "number" ? [told.start, told.end] : null,
  );
}

export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(-1, error instanceof Error ? error.message : String(error), "page");
}
