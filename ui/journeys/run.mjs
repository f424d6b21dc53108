// Runs journeys in one browser: node run.mjs OPEN_URL GUARDED_URL CHROMIUM JOURNEY... `tests/ui/test_journeys.py` starts
// it, and does what a line of its output asks for.
import { createInterface } from "node:readline";
import { chromium, devices } from "playwright-core";
import { equipped, until } from "./page.mjs";

const [open, guarded, executablePath, ...names] = process.argv.slice(2);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (told) => process.stdout.write(`${JSON.stringify(told)}\n`);

/** Asks the test for something that only it can do, and waits for it. */
async function ask(action, more = {}) {
  say({ do: action, ...more });
  await answers.next();
}

const callTo = (base, token) => async (method, path, body, headers = {}) => {
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: { ...(body ? { "Content-Type": "application/json" } : {}), ...(token ? { Authorization: `Bearer ${token}` } : {}), ...headers },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
for (const name of names) {
  const started = performance.now();
  const problems = [];
  const note = (problem) => problems.push(problem);
  const { default: journey, isPhone = false, needsToken = false } = await import(`./${name}.mjs`);
  const base = needsToken ? guarded : open;
  await ask("empty");
  const context = await browser.newContext({
    ...(isPhone ? devices["Pixel 7"] : { viewport: { width: 1440, height: 900 } }),
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const { look, checkPolicy } = await equipped(page, base, note);
  try {
    // Tokens and jobs are made over the open API, whichever the browser uses.
    await journey({ page, context, base, open, api: callTo(open), callTo, until, look, ask, equip: (other) => equipped(other, base, note) });
    if (!page.isClosed()) await checkPolicy("at the end");
  } catch (error) {
    problems.push(String(error.stack ?? error));
    if (process.env.PICTURE) await page.screenshot({ path: process.env.PICTURE });
  }
  await context.close();
  for (const problem of problems) say({ problem: `${name}: ${problem}` });
  say({ done: name, seconds: (performance.now() - started) / 1000 });
}
await browser.close();
process.exit(0);
