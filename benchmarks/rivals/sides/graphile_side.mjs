// graphile-worker: 24 jobs at once, a local queue of 500, completions in batches, a pool of 10 connections.
import fs from "node:fs";
import { run, runMigrations, makeWorkerUtils } from "graphile-worker";
import pg from "pg";

const pool = new pg.Pool({ max: 10 });
pool.on("error", () => {});
const [command, jobs, payload] = process.argv.slice(2);
const silent = { error() {}, warn() {}, info() {}, debug() {}, scope() { return silent; } };

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
  await runMigrations({ pgPool: pool });
  await pool.end();
} else if (command === "enqueue") {
  const utils = await makeWorkerUtils({ pgPool: pool });
  const body = JSON.parse(payload);
  for (let start = 0; start < Number(jobs); start += 1000) {
    const size = Math.min(1000, Number(jobs) - start);
    await utils.addJobs(Array.from({ length: size }, (_, n) => ({ identifier: "noop", payload: { ...body, number: start + n } })));
  }
  await utils.release();
  await pool.end();
} else if (command === "work") {
  const record = recorder();
  const runner = await run({
    pgPool: pool,
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
