/** A worker: claims runs, calls their tasks and stores how they ended. It needs no access to the database. */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Attempt, type Task } from "./attempt.js";
import { Connection, FoliotError, Unavailable, type Address, type Json, type JsonObject } from "./connection.js";
import type { Beat, Claim, Ended, Options, Settings, Upstream } from "./protocol.js";

export interface TaskOptions {
  queue?: string;
  retries?: number;
  timeout_seconds?: number;
  description?: string;
  /** The JSON Schema of its payload. */
  schema?: JsonObject;
}

export interface WorkerOptions extends Address {
  /** The slots of each queue. Default: 10 in each queue that a task names. */
  queues?: Record<string, number>;
  labels?: Record<string, string>;
  name?: string;
  /** Time that running attempts get when the worker stops. */
  graceSeconds?: number;
  /** Gets trouble that passes. Default: console.warn. */
  onTrouble?: (message: string) => void;
}

const OUTCOMES_MAX = 1_000;
const LOG_MILLISECONDS = 500;
const DEFAULT_SLOTS = 10;

export class Worker {
  readonly #connection: Connection;
  readonly #tasks = new Map<string, { task: Task; options: TaskOptions }>();
  readonly #running = new Map<string, Attempt>();
  /** Attempts whose outcome is not stored yet, and their claims. */
  readonly #held = new Map<string, Claim>();
  readonly #finished: { ended: Ended; claim: Claim }[] = [];
  readonly #stop = new AbortController();
  #id = "";
  #settings!: Settings;
  #trustedUntil = 0;
  #mayOwnUnheld = false;
  #isDraining = false;
  /** All attempts have ended. */
  #left = false;
  #refusal: Error | undefined;
  #slotFreed = new Signal();
  #outcomeAdded = new Signal();
  #beatSoon = new Signal();
  #leaving = new Signal();

  constructor(private readonly options: WorkerOptions = {}) {
    this.#connection = new Connection(options);
  }

  /** Adds a task. */
  task(name: string, task: Task, options: TaskOptions = {}): this {
    this.#tasks.set(name, { task, options });
    return this;
  }

  /** Asks the worker to stop: running attempts get their grace period. */
  stop(): void {
    this.#stop.abort();
    this.#slotFreed.set();
  }

  /** Works until the worker is stopped or drained. Throws if the server refuses the token. */
  async run(): Promise<void> {
    this.#settings = await this.#patiently(() => this.#connection.send<Settings>("GET", "/v1/worker/settings"));
    await this.#register();
    const beating = this.#until(() => this.#left, () => this.#beat());
    const storing = this.#until(() => this.#left && !this.#finished.length, () => this.#store());
    const logging = this.#until(() => this.#left, () => this.#log());
    await this.#work();
    await this.#finish();
    this.#left = true;
    this.#outcomeAdded.set();
    this.#beatSoon.set();
    this.#leaving.set();
    await Promise.all([beating, storing, logging]);
    if (this.#refusal !== undefined) throw this.#refusal;
    await this.#post("leave", {}).catch((error: unknown) => this.#trouble(error));
  }

  get #slots(): Record<string, number> {
    const named = [...this.#tasks.values()].map(({ options }) => options.queue ?? "default");
    return this.options.queues ?? Object.fromEntries(named.map((queue) => [queue, DEFAULT_SLOTS]));
  }

  #free(): Record<string, number> {
    const free = { ...this.#slots };
    for (const { claim } of this.#running.values()) free[claim.queue] = (free[claim.queue] ?? 0) - 1;
    return Object.fromEntries(Object.entries(free).map(([queue, slots]) => [queue, Math.max(slots, 0)]));
  }

  async #register(): Promise<void> {
    const tasks = Object.fromEntries(
      [...this.#tasks].map(([name, { options }]) => {
        const { queue = "default", description = "", schema } = options;
        return [name, { queue, description, ...(schema ? { schema } : {}) }];
      }),
    );
    const { name = `${hostname()}:${process.pid}`, labels = {} } = this.options;
    const id = randomUUID();
    const askedAt = now();
    await this.#patiently(() =>
      this.#connection.send("POST", "/v1/worker/register", { worker_id: id, name, queues: this.#slots, tasks, labels }),
    );
    this.#id = id;
    this.#trustFrom(askedAt);
  }

  #trustFrom(askedAt: number): void {
    const lease = this.#settings.lease_seconds;
    this.#trustedUntil = askedAt + lease - Math.min(2, lease / 5);
  }

  // --- the loops

  async #work(): Promise<void> {
    while (!this.#stop.signal.aborted && !this.#isDraining && this.#refusal === undefined) {
      const slots = this.#free();
      try {
        if (!Object.values(slots).some((free) => free > 0)) {
          await this.#slotFreed.wait();
        } else if (!(await this.#claim(slots))) {
          await this.#wait(slots);
        }
      } catch (error) {
        this.#trouble(error);
        await this.#pause(500);
      }
    }
  }

  /** Whether it found any. */
  async #claim(slots: Record<string, number>): Promise<boolean> {
    const held = this.#mayOwnUnheld ? { held: this.#keys() } : {};
    const id = this.#id;
    let claims: Claim[];
    try {
      claims = (await this.#post<{ runs: Claim[] }>("claim", { slots, tasks: [...this.#tasks.keys()], ...held })).runs;
    } catch (error) {
      // The server may have claimed runs that this worker does not know of.
      this.#mayOwnUnheld = true;
      throw error;
    }
    this.#mayOwnUnheld = this.#mayOwnUnheld && claims.length > 0;
    // The lease was lost meanwhile: the server gives these runs to others.
    if (id !== this.#id) return false;
    for (const claim of claims) this.#start(claim);
    return claims.length > 0;
  }

  async #wait(slots: Record<string, number>): Promise<void> {
    const seconds = Object.values(slots).every((free) => free > 0) ? this.#settings.wait_seconds : 1;
    const body = { worker_id: this.#id, slots, tasks: [...this.#tasks.keys()], seconds };
    try {
      const news = await this.#connection.send<{ beat: boolean }>("POST", "/v1/worker/wait", body, {
        extraMilliseconds: seconds * 1000,
        signal: this.#stop.signal,
      });
      if (news.beat) this.#beatSoon.set();
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  async #beat(): Promise<void> {
    const [askedAt, id] = [now(), this.#id];
    try {
      const answer = await this.#post<Beat>("beat", { held: this.#keys() });
      if (!answer.is_renewed) {
        await this.#loseLease();
      } else {
        this.#trustFrom(askedAt);
        for (const end of answer.end ?? []) this.#running.get(key(end))?.end(end);
        if (answer.owns_unheld) this.#mayOwnUnheld = true;
        if (answer.is_draining && !this.#isDraining) {
          this.#isDraining = true;
          this.#slotFreed.set();
        }
      }
    } catch (error) {
      this.#trouble(error);
      if (now() >= this.#trustedUntil && id === this.#id && this.#refusal === undefined) await this.#loseLease();
      await this.#beatSoon.wait(200);
      return;
    }
    await this.#beatSoon.wait(this.#settings.beat_seconds * 1000);
  }

  /** Others may be running the same jobs now. */
  async #loseLease(): Promise<void> {
    for (const attempt of this.#running.values()) attempt.stop({ ending: "lost" });
    this.#held.clear();
    this.#finished.length = 0;
    if (!this.#left) await this.#register();
  }

  async #store(): Promise<void> {
    if (!this.#finished.length) await this.#outcomeAdded.wait();
    const batch = this.#finished.slice(0, OUTCOMES_MAX);
    if (!batch.length) return;
    const concerns_others = batch.some(({ claim }) => claim.concerns_others);
    const frees_limit = batch.some(({ claim }) => claim.options?.["concurrency"] !== undefined);
    try {
      await this.#post("outcomes", { ended: batch.map(({ ended }) => ended), concerns_others, frees_limit });
    } catch (error) {
      this.#trouble(error);
      if (this.#refusal !== undefined) this.#finished.length = 0;
      await sleep(200);
      return;
    }
    const stored = new Set(batch);
    this.#finished.splice(0, this.#finished.length, ...this.#finished.filter((one) => !stored.has(one)));
    for (const { claim } of batch) this.#held.delete(key(claim));
  }

  /** Sends new output and progress of running attempts. */
  async #log(): Promise<void> {
    await this.#leaving.wait(LOG_MILLISECONDS);
    const parts = [];
    const progress = [];
    for (const attempt of this.#running.values()) {
      const { run_id, token, attempt: number } = attempt.claim;
      const chunk = Buffer.concat(attempt.unsent.splice(0));
      for (let start = 0; start < chunk.length; start += 65_536) {
        const part = chunk.subarray(start, start + 65_536);
        parts.push({ run_id, token, position: attempt.sentBytes, chunk: part.toString("base64") });
        attempt.sentBytes += part.length;
      }
      if (attempt.share !== undefined) progress.push({ run_id, token, attempt: number, ...attempt.share });
      attempt.share = undefined;
    }
    // The whole output is stored with the outcome, so a part may get lost.
    if (parts.length || progress.length) {
      await this.#post("logs", { parts, progress }).catch((error: unknown) => this.#trouble(error));
    }
  }

  async #finish(): Promise<void> {
    const giveUpAt = now() + (this.#isDraining ? Infinity : (this.options.graceSeconds ?? 30));
    while (this.#running.size && now() < giveUpAt && this.#refusal === undefined) await this.#slotFreed.wait(100);
    for (const attempt of this.#running.values()) attempt.stop({ ending: "released" });
    while (this.#running.size) await this.#slotFreed.wait(100);
  }

  // --- attempts

  #start(claim: Claim): void {
    this.#held.set(key(claim), claim);
    void this.#attempt(claim);
  }

  async #attempt(claim: Claim): Promise<void> {
    const known = this.#tasks.get(claim.task);
    const { retries, timeout_seconds } = this.#settings;
    const own = { retries: known?.options.retries ?? retries, timeout_seconds: known?.options.timeout_seconds ?? timeout_seconds };
    const options = { ...own, ...claim.options } as Options;
    const limits = { resultMaxBytes: this.#settings.result_max_bytes, outputMaxBytes: this.#settings.output_max_bytes };
    const upstream: Record<string, Json> = {};
    const attempt = new Attempt(claim, options, upstream, limits);
    this.#running.set(key(claim), attempt);
    const ended = await attempt.run(async (payload, context) => {
      if (claim.has_upstream) await this.#readUpstream(claim, upstream);
      if (known === undefined) throw new Error(`this worker knows no task ${claim.task}`);
      return await known.task(resolved(payload, upstream) as JsonObject, context);
    });
    this.#running.delete(key(claim));
    if (ended === undefined || !this.#held.has(key(claim))) this.#held.delete(key(claim));
    else this.#finished.push({ ended, claim });
    this.#outcomeAdded.set();
    this.#slotFreed.set();
  }

  async #readUpstream(claim: Claim, upstream: Record<string, Json>): Promise<void> {
    const attempts = [[claim.run_id, claim.token]];
    const found = await this.#patiently(() => this.#post<Upstream>("upstream", { attempts }));
    for (const one of found.runs[0]?.results ?? []) {
      if (one.state === "succeeded") upstream[one.key] = one.result ?? null;
    }
  }

  // --- requests

  async #post<Answer>(path: string, body: object): Promise<Answer> {
    return await this.#connection.send<Answer>("POST", `/v1/worker/${path}`, { worker_id: this.#id, ...body });
  }

  #keys(): [string, number][] {
    return [...this.#held.values()].map(({ run_id, token }) => [run_id, token]);
  }

  async #patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    for (let pause = 100; ; pause = Math.min(pause * 2, 5_000)) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof Unavailable) || this.#stop.signal.aborted) throw error;
        this.#trouble(error);
        await sleep(pause);
      }
    }
  }

  async #until(isOver: () => boolean, turn: () => Promise<void>): Promise<void> {
    while (!isOver()) {
      try {
        await turn();
      } catch (error) {
        this.#trouble(error);
        await sleep(200);
      }
    }
  }

  #trouble(error: unknown): void {
    if (error instanceof FoliotError && (error.status === 401 || error.status === 403)) {
      this.#refusal = error;
      this.stop();
      return;
    }
    (this.options.onTrouble ?? console.warn)(`foliot worker: ${(error as Error).message}`);
  }

  async #pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

}

/** Wakes its only waiter. A signal that nobody waits for is kept. */
class Signal {
  #isSet = false;
  #waiting: (() => void) | undefined;

  set(): void {
    this.#isSet = true;
    this.#waiting?.();
  }

  async wait(milliseconds?: number): Promise<void> {
    if (!this.#isSet) {
      await new Promise<void>((resolve) => {
        const timer = milliseconds === undefined ? undefined : setTimeout(resolve, milliseconds);
        this.#waiting = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#waiting = undefined;
    this.#isSet = false;
  }
}

function key(one: { run_id: string; token: number }): string {
  return `${one.run_id}/${one.token}`;
}

/** Seconds on a clock that never goes back. */
function now(): number {
  return performance.now() / 1000;
}

/** The payload with references such as {"$result": "step", "path": ["rows", 0]} replaced by the results. */
export function resolved(value: Json, upstream: Readonly<Record<string, Json>>): Json {
  if (Array.isArray(value)) return value.map((one) => resolved(one, upstream));
  if (value === null || typeof value !== "object") return value;
  const name = value["$result"];
  if (typeof name !== "string") {
    return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, resolved(one, upstream)]));
  }
  if (!(name in upstream)) throw new Error(`the payload refers to the result of ${name}, but there is none`);
  const path = Array.isArray(value["path"]) ? value["path"] : value["path"] === undefined ? [] : [value["path"]];
  let found: Json | undefined = upstream[name];
  for (const part of path) {
    found = found === null || typeof found !== "object" ? undefined : (found as Record<string, Json>)[String(part)];
    if (found === undefined) throw new Error(`the result of ${name} has nothing at ${JSON.stringify(path)}`);
  }
  return found ?? null;
}
