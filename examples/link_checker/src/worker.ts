/** A worker with one task: `check_page` reads a page and says which of its links are broken. */

import { Fail, Snooze, Worker } from "foliot";

import { brokenness, linksOf, type Broken } from "./links.js";

const worker = new Worker({ queues: { links: 20 } });

worker.task(
  "check_page",
  async ({ url }, context) => {
    const page = String(url);
    const answer = await fetch(page, { signal: context.signal });
    // The site asks for patience. Putting a run off uses up none of its attempts.
    if (answer.status === 429) throw new Snooze(Number(answer.headers.get("Retry-After") ?? 60));
    // Another attempt would find the same. Everything else that goes wrong is retried.
    if (answer.status === 404) throw new Fail(`${page} does not exist`);
    if (!answer.ok) throw new Error(`${page} answered ${answer.status}`);

    const links = linksOf(await answer.text(), page);
    const broken: Broken[] = [];
    for (const [number, link] of links.entries()) {
      context.progress(number / links.length, link);
      const found = await brokenness(link, context.signal);
      if (found !== undefined) {
        context.write(`${found.link}: ${found.why}\n`);
        broken.push(found);
      }
    }
    return { links: links.length, broken };
  },
  {
    queue: "links",
    description: "Checks the links of a page",
    schema: { type: "object", properties: { url: { type: "string" } }, required: ["url"] },
  },
);

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => worker.stop());
await worker.run();
