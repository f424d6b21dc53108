// Takes the pictures of README and docs: node shots.mjs URL CHROMIUM DIRECTORY. `make screenshots` starts it with a demo.
import { chromium } from "playwright-core";

const [base, executablePath, directory] = process.argv.slice(2);
const ask = async (path) => (await fetch(`${base}${path}`)).json();
const [workflow] = (await ask("/v1/workflows?name=new-collection&limit=10")).items.slice(-1);
const [waiting] = (await ask("/v1/runs?job=train-recommendations&limit=1")).items;
const PICTURES = {
  overview: "/?range=1h",
  workflow: `/workflows/${workflow.id}/graph`,
  why: `/runs/${waiting.id}/why`,
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce", timezoneId: "Europe/Berlin", locale: "en-GB" });
const page = await context.newPage();
for (const [name, path] of Object.entries(PICTURES)) {
  await page.goto(`${base}/ui${path}`);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.getByRole("button", { name: "Live" }).waitFor();
  await page.locator("main [class*=skeleton]").first().waitFor({ state: "detached" });
  // Two pulses, so that charts and counts are there.
  await page.waitForTimeout(2_500);
  await page.screenshot({ path: `${directory}/${name}.png` });
}
await browser.close();
