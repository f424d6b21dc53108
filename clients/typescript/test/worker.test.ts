/** Runs against a real server: FOLIOT_URL and FOLIOT_TOKEN name it, and a token of the role `worker`. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, Fail, FoliotError, JobFailed, Skip, Snooze, Worker, type Json } from "../src/index.js";

const client = new Client();
const cancelled: string[] = [];
let tries = 0;
let snoozes = 0;

const worker = new Worker({ queues: { default: 20 }, labels: { language: "typescript" } })
  .task("add", ({ a, b }) => (a as number) + (b as number))
  .task("flaky", () => {
    tries += 1;
    if (tries < 3) throw new RangeError(`try ${tries}`);
    return tries;
  })
  .task("hopeless", () => {
    throw new Fail("no retry would help");
  })
  .task("later", () => {
    snoozes += 1;
    if (snoozes === 1) throw new Snooze(0.1);
    return "done";
  })
  .task("nothing", () => {
    throw new Skip("nothing to do");
  })
  .task("talk", async (_, context) => {
    context.write("hello\n");
    context.progress(0.5, "half");
    await sleep(10);
    context.write("again\n");
  })
  .task("slow", async () => await sleep(60_000, undefined, { ref: false }), { retries: 0 })
  .task("hold", async (_, context) => {
    await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
    cancelled.push(context.runId);
    throw new Error("stopped");
  });
let running: Promise<void>;

before(async () => {
  running = worker.run();
  // A job is refused until a worker has announced its task.
  for (;;) {
    try {
      await client.submit({ task: "nothing" });
      return;
    } catch (error) {
      if (!(error instanceof FoliotError) || error.code !== "unknown_task") throw error;
      await sleep(50);
    }
  }
});

after(async () => {
  worker.stop();
  await running;
});

async function run(task: string, payload: Record<string, Json> = {}, more: object = {}): Promise<Json> {
  return await client.result((await client.submit({ task, payload, ...more })).id);
}

test("a result", async () => {
  assert.equal(await run("add", { a: 2, b: 3 }), 5);
});

test("many jobs", async () => {
  const jobs = await Promise.all(Array.from({ length: 50 }, (_, b) => client.submit({ task: "add", payload: { a: 1, b } })));
  const results = await Promise.all(jobs.map(({ id }) => client.result(id)));
  assert.deepEqual(results, Array.from({ length: 50 }, (_, b) => b + 1));
});

test("a retry", async () => {
  assert.equal(await run("flaky", {}, { retries: 3, backoff: { kind: "fixed", base_seconds: 0.01 } }), 3);
});

test("a failure that no retry helps", async () => {
  const { id } = await client.submit({ task: "hopeless", retries: 5 });
  await assert.rejects(client.result(id), (error: unknown) => {
    assert.ok(error instanceof JobFailed);
    assert.equal(error.job.error?.kind, "Fail");
    assert.equal(error.job["attempt"], 1);
    return true;
  });
});

test("a job that is put off", async () => {
  assert.equal(await run("later"), "done");
});

test("a job with nothing to do", async () => {
  assert.equal((await client.wait((await client.submit({ task: "nothing" })).id)).status, "skipped");
});

test("output and progress", async () => {
  const { id } = await client.submit({ task: "talk" });
  const job = await client.wait(id);
  assert.equal(job.status, "completed");
  assert.match(JSON.stringify(job), /hello\\nagain/);
});

test("a time limit", async () => {
  const { id } = await client.submit({ task: "slow", timeout_seconds: 0.2 });
  const job = await client.wait(id);
  assert.deepEqual([job.status, job.error?.kind], ["failed", "Timeout"]);
});

test("a cancel", async () => {
  const { id } = await client.submit({ task: "hold" });
  for (;;) {
    if ((await client.get(id)).status === "running") break;
    await sleep(20);
  }
  await new Client({ token: process.env["FOLIOT_OPERATOR_TOKEN"] ?? "" }).cancel(id, "enough");
  assert.equal((await client.wait(id)).status, "cancelled");
  assert.ok(cancelled.includes(id));
});

test("an idempotency key", async () => {
  const options = { idempotencyKey: `key-${process.pid}` };
  const first = await client.submit({ task: "add", payload: { a: 1, b: 1 } }, options);
  const second = await client.submit({ task: "add", payload: { a: 1, b: 1 } }, options);
  assert.equal(first.id, second.id);
});

test("a wrong token", async () => {
  await assert.rejects(new Worker({ token: "foliot_wrong" }).task("add", () => 1).run(), { status: 401 });
});
