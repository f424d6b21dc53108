// Takes the pictures of README and docs: node shots.mjs URL CHROMIUM DIRECTORY. `make screenshots` starts it with a demo.
import { writeFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { withPalette } from "./palette.mjs";

const [base, executablePath, directory] = process.argv.slice(2);
const ask = async (path) => (await fetch(`${base}${path}`)).json();
// The latest first: one that waits for its approval shows the most.
const collections = (await ask("/v1/workflows?name=new-collection&limit=10")).items;
const workflow = collections.findLast((one) => one.status === "running") ?? collections[0];
const [waiting] = (await ask("/v1/runs?job=train-recommendations&limit=1")).items;
const PICTURES = {
  overview: { path: "/?range=1h" },
  // Below 1200 pixels the rail has icons only, which leaves more room for the graph.
  workflow: { path: `/workflows/${workflow.id}/graph`, width: 1190, height: 800 },
  why: { path: `/runs/${waiting.id}/why` },
  job: { path: "/jobs/price-import/ticks" },
  "alert-rule": { path: "/alerts", press: "New rule" },
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const context = await browser.newContext({ colorScheme: "light", reducedMotion: "reduce", timezoneId: "Europe/Berlin", locale: "en-GB" });
const page = await context.newPage();
for (const [name, { path, width = 1280, height = 800, press }] of Object.entries(PICTURES)) {
  await page.setViewportSize({ width, height });
  await page.goto(`${base}/ui${path}`);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.getByRole("button", { name: "Live" }).waitFor();
  await page.locator("main [class*=skeleton]").first().waitFor({ state: "detached" });
  if (press) await page.getByRole("button", { name: press }).click();
  // Two pulses, so that charts and counts are there.
  await page.waitForTimeout(2_500);
  writeFileSync(`${directory}/${name}.png`, withPalette(await page.screenshot()));
}
await browser.close();
