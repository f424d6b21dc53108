// graphile-worker: 24 jobs at once, a local queue of 500, completions in batches, a pool of 10 connections.
import fs from "node:fs";
import { Logger, run, runMigrations, makeWorkerUtils } from "graphile-worker";
import pg from "pg";

const pool = new pg.Pool({ max: 10 });
pool.on("error", () => {});
pool.on("connect", (client) => client.on("error", () => {}));
const [command, jobs, payload, due] = process.argv.slice(2);
const logger = new Logger(() => () => {});

function recorder() {
  const file = fs.openSync(process.env.BENCH_EFFECTS, "r+");
  const start = Number(process.env.BENCH_REGION ?? 0) * Number(process.env.BENCH_JOBS) * 16;
  const place = Buffer.alloc(16);
  return (number) => {
    fs.readSync(file, place, 0, 16, start + number * 16);
    if (place.readBigUInt64LE(0) === 0n) place.writeBigUInt64LE(process.hrtime.bigint(), 0);
    place.writeBigUInt64LE(place.readBigUInt64LE(8) + 1n, 8);
    fs.writeSync(file, place, 0, 16, start + number * 16);
  };
}

if (command === "prepare") {
  await runMigrations({ pgPool: pool, logger });
  await pool.end();
} else if (command === "pace") {
  // One at a time; prints when each call had returned.
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  for (let number = 0; number < Number(jobs); number++) {
    await utils.addJob("noop", { ...JSON.parse(payload), number });
    console.log(Number(process.hrtime.bigint()) / 1e9);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await utils.release();
  await pool.end();
} else if (command === "enqueue" || command === "delayed") {
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  const body = JSON.parse(payload);
  const when = due === undefined ? {} : { runAt: new Date(1000 * Number(due)) };
  for (let start = 0; start < Number(jobs); start += 1000) {
    const size = Math.min(1000, Number(jobs) - start);
    await utils.addJobs(Array.from({ length: size }, (_, n) => ({ identifier: "noop", payload: { ...body, number: start + n }, ...when })));
  }
  await utils.release();
  await pool.end();
} else if (command === "work") {
  const record = recorder();
  const runner = await run({
    pgPool: pool,
    logger,
    taskList: { noop: async (body) => record(body.number) },
    preset: {
      worker: {
        concurrentJobs: 24,
        pollInterval: 500,
        maxPoolSize: 10,
        localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    noHandleSignals: true,
  });
  process.on("SIGTERM", () => runner.stop().catch(() => {}).finally(() => process.exit(0)));
  await runner.promise;
}
