/** One attempt: calls its task, with a time limit, and says how it ended. */

import type { Json, JsonObject } from "./connection.js";
import type { Claim, End, Ended, Options } from "./protocol.js";

/** What a task knows of its run. */
export interface Context {
  readonly runId: string;
  readonly task: string;
  readonly attempt: number;
  /** Results of earlier steps of the workflow, by step. */
  readonly upstream: Readonly<Record<string, Json>>;
  /** Aborted when the attempt must stop: its time is over, the job was cancelled, or the worker stops. */
  readonly signal: AbortSignal;
  /** Appends to the output of the attempt. */
  write(text: string): void;
  /** Reports progress, from 0 to 1. */
  progress(share: number, message?: string): void;
}

/** A task may be async. It gets the payload of the job. */
export type Task = (payload: JsonObject, context: Context) => unknown;

/** Throw it to fail the job without another attempt. */
export class Fail extends Error {}

/** Throw it to put the job off, without using up an attempt. */
export class Snooze extends Error {
  constructor(readonly seconds: number) {
    super(`put off for ${seconds} s`);
  }
}

/** Throw it when there is nothing to do. */
export class Skip extends Error {}

type Stop = { ending: "timeout" | "cancelled" | "released" | "lost"; reason?: string; message?: string };

export class Attempt {
  readonly #stopping = new AbortController();
  readonly #stopped: Promise<void>;
  #stop: Stop | undefined;
  output: Buffer[] = [];
  /** Output that is not sent yet, and its position. */
  unsent: Buffer[] = [];
  sentBytes = 0;
  share: { share: number; message: string } | undefined;

  constructor(
    readonly claim: Claim,
    readonly options: Options,
    private readonly upstream: Record<string, Json>,
    private readonly limits: { resultMaxBytes: number; outputMaxBytes: number },
  ) {
    this.#stopped = new Promise((resolve) =>
      this.#stopping.signal.addEventListener("abort", () => resolve(), { once: true }),
    );
  }

  /** Ends the attempt because the heartbeat says so. */
  end(why: End): void {
    if (why.is_lost) this.stop({ ending: "lost" });
    else this.stop({ ending: "cancelled", reason: why.reason ?? "cancelled", message: why.message ?? "cancelled" });
  }

  stop(why: Stop): void {
    if (this.#stop === undefined) {
      this.#stop = why;
      this.#stopping.abort();
    }
  }

  /** Undefined if the run belongs to somebody else now, so that nothing is left to say. */
  async run(task: Task): Promise<Ended | undefined> {
    const limit = setTimeout(() => this.stop({ ending: "timeout" }), Math.min(this.options.timeout_seconds * 1000, 2 ** 31 - 1));
    try {
      const ended = await Promise.race([this.#called(task), this.#stopped.then(() => undefined)]);
      // A success that comes in time stands.
      if (ended !== undefined && (this.#stop === undefined || ended.ending === "succeeded")) return this.#complete(ended);
      return this.#endedByStop();
    } finally {
      clearTimeout(limit);
    }
  }

  async #called(task: Task): Promise<Partial<Ended> & Pick<Ended, "ending">> {
    if (this.claim.is_disabled) {
      return { ending: "failed", is_retryable: false, error: { kind: "TaskDisabled", message: "the task is disabled" } };
    }
    try {
      const result = await task(this.claim.payload ?? {}, this.#context());
      const text = result === undefined ? undefined : JSON.stringify(result);
      if (text !== undefined && Buffer.byteLength(text) > this.limits.resultMaxBytes) {
        const message = `the result has more than ${this.limits.resultMaxBytes} bytes; store it elsewhere`;
        return { ending: "failed", error: { kind: "ResultTooLarge", message } };
      }
      return text === undefined ? { ending: "succeeded" } : { ending: "succeeded", result: JSON.parse(text) as Json };
    } catch (error) {
      return failure(error);
    }
  }

  #context(): Context {
    const { claim } = this;
    return {
      runId: claim.run_id,
      task: claim.task,
      attempt: claim.attempt,
      upstream: this.upstream,
      signal: this.#stopping.signal,
      write: (text) => this.#write(Buffer.from(text)),
      progress: (share, message = "") => {
        this.share = { share: Math.min(Math.max(share, 0), 1), message };
      },
    };
  }

  #write(chunk: Buffer): void {
    const left = this.limits.outputMaxBytes - this.output.reduce((size, one) => size + one.length, 0);
    const kept = chunk.subarray(0, Math.max(left, 0));
    if (kept.length) {
      this.output.push(kept);
      this.unsent.push(kept);
    }
  }

  #complete(ended: Partial<Ended> & Pick<Ended, "ending">): Ended {
    const { run_id, token, attempt, lost } = this.claim;
    const output = this.output.length ? { output: Buffer.concat(this.output).toString("base64") } : {};
    const decisive = ended.ending === "failed" || ended.ending === "timeout" || ended.ending === "snoozed";
    const asked = decisive ? { attempt, lost: lost ?? 0, options: this.options } : {};
    return { run_id, token, ...asked, ...output, ...ended };
  }

  #endedByStop(): Ended | undefined {
    const why = this.#stop;
    if (why === undefined || why.ending === "lost") return undefined;
    if (why.ending === "released") return this.#complete({ ending: "released" });
    if (why.ending === "timeout") {
      const message = `ran longer than its ${this.options.timeout_seconds} s`;
      return this.#complete({ ending: "timeout", error: { kind: "Timeout", message } });
    }
    const error = { kind: "Cancelled", message: why.message ?? "cancelled" };
    return this.#complete({ ending: "cancelled", reason: why.reason ?? "cancelled", error });
  }
}

function failure(error: unknown): Partial<Ended> & Pick<Ended, "ending"> {
  const said = error instanceof Error ? error : new Error(String(error));
  const told = { kind: said.constructor.name, message: said.message, traceback: said.stack ?? "" };
  if (said instanceof Snooze) return { ending: "snoozed", delay_seconds: said.seconds };
  if (said instanceof Skip) return { ending: "skipped", error: told };
  if (said instanceof Fail) return { ending: "failed", error: told, is_retryable: false };
  return { ending: "failed", error: told };
}
