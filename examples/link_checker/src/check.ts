/** Submits a job for each page, and prints what they found: `npm run check -- URL...` */

import { Client, JobFailed } from "foliot";

import type { Broken } from "./links.js";

const client = new Client();
const pages = process.argv.slice(2);
const jobs = await Promise.all(
  pages.map((url) =>
    client.submit({ task: "check_page", queue: "links", payload: { url }, retries: 3, timeout_seconds: 60 }),
  ),
);
for (const [number, job] of jobs.entries()) {
  const page = pages[number];
  try {
    const { links, broken } = (await client.result(job.id)) as unknown as { links: number; broken: Broken[] };
    console.log(`${page}: ${links} links, ${broken.length} broken`);
    for (const { link, why } of broken) console.log(`  ${link}: ${why}`);
  } catch (error) {
    if (!(error instanceof JobFailed)) throw error;
    console.log(`${page}: ${error.job.error?.message}`);
  }
}
