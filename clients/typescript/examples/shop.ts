/** A worker of a shop. `FOLIOT_TOKEN=... node dist/examples/shop.js` */

import { Worker } from "../src/index.js";

const worker = new Worker({ queues: { default: 10 } });

worker.task("send_invoice", async ({ customer_id }, context) => {
  context.write(`invoice for customer ${customer_id}\n`);
  return { sent: true };
});

process.once("SIGTERM", () => worker.stop());
process.once("SIGINT", () => worker.stop());
await worker.run();
