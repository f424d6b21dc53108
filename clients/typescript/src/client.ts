/** Submits jobs and waits for their results. */

import { setTimeout as sleep } from "node:timers/promises";

import { Connection, Unavailable, type Address, type Json, type JsonObject } from "./connection.js";

/** The fields of a job: see docs/job-fields.md. */
export interface JobRequest {
  task?: string;
  command?: string;
  payload?: JsonObject;
  name?: string;
  queue?: string;
  priority?: number;
  delay_seconds?: number;
  schedule_time?: string;
  cron?: string;
  every?: string;
  timezone?: string;
  retries?: number;
  timeout_seconds?: number;
  tags?: string[];
  [field: string]: unknown;
}

export interface Job {
  id: string;
  status: string;
  result?: Json;
  error?: { kind: string; message: string; traceback?: string } | null;
  [field: string]: unknown;
}

const ENDED = new Set(["completed", "failed", "cancelled", "skipped"]);

export class JobFailed extends Error {
  constructor(readonly job: Job) {
    super(`job ${job.id} ${job.status}${job.error ? `: ${job.error.kind}: ${job.error.message}` : ""}`);
    this.name = "JobFailed";
  }
}

export class Client {
  readonly #connection: Connection;

  constructor(address: Address = {}) {
    this.#connection = new Connection(address);
  }

  /** Creates a job. With an idempotency key, the request is repeated until there is an answer. */
  async submit(job: JobRequest, options: { idempotencyKey?: string } = {}): Promise<Job> {
    const { idempotencyKey } = options;
    if (idempotencyKey === undefined) return await this.#connection.send<Job>("POST", "/v1/jobs", job);
    const headers = { "Idempotency-Key": idempotencyKey };
    for (let tries = 1; ; tries++) {
      try {
        return await this.#connection.send<Job>("POST", "/v1/jobs", job, { headers });
      } catch (error) {
        if (!(error instanceof Unavailable) || tries === 5) throw error;
        await sleep(200 * 2 ** tries);
      }
    }
  }

  async get(id: string): Promise<Job> {
    return await this.#connection.send<Job>("GET", `/v1/jobs/${encodeURIComponent(id)}`);
  }

  async cancel(id: string, reason?: string): Promise<Job> {
    return await this.#connection.send<Job>("POST", `/v1/runs/${encodeURIComponent(id)}/cancel`, reason ? { reason } : {});
  }

  /** Waits until the job has ended. */
  async wait(id: string, options: { signal?: AbortSignal } = {}): Promise<Job> {
    for (let pause = 50; ; pause = Math.min(pause * 1.5, 1_000)) {
      const job = await this.get(id);
      if (ENDED.has(job.status)) return job;
      await sleep(pause, undefined, options);
    }
  }

  /** Waits for the job and returns the result of its task. Throws `JobFailed` if it did not complete. */
  async result(id: string): Promise<Json> {
    const job = await this.wait(id);
    if (job.status !== "completed") throw new JobFailed(job);
    return job.result ?? null;
  }
}
