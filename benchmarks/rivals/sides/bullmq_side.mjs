// BullMQ: 24 jobs at once, finished jobs removed.
import fs from "node:fs";
import { Queue, Worker } from "bullmq";

const [command, jobs, payload, due] = process.argv.slice(2);
const where = new URL(process.env.BENCH_BROKER);
const connection = { host: where.hostname, port: Number(where.port), maxRetriesPerRequest: null };
const options = { removeOnComplete: true, removeOnFail: true };

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

if (command === "work") {
  const record = recorder();
  const worker = new Worker("bench", async (job) => record(job.data.number), { connection, concurrency: 24 });
  worker.on("error", () => {});
  process.on("SIGTERM", () => worker.close().catch(() => {}).finally(() => process.exit(0)));
} else {
  const queue = new Queue("bench", { connection });
  const body = JSON.parse(payload);
  if (command === "pace") {
    // One at a time; prints when each call had returned.
    for (let number = 0; number < Number(jobs); number++) {
      await queue.add("noop", { ...body, number }, options);
      console.log(Number(process.hrtime.bigint()) / 1e9);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } else {
    const delay = due === undefined ? {} : { delay: Math.max(0, 1000 * Number(due) - Date.now()) };
    for (let start = 0; start < Number(jobs); start += 1000) {
      const size = Math.min(1000, Number(jobs) - start);
      await queue.addBulk(
        Array.from({ length: size }, (_, n) => ({ name: "noop", data: { ...body, number: start + n }, opts: { ...options, ...delay } })),
      );
    }
  }
  await queue.close();
}
