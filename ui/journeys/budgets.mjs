/**
 * What the UI costs, as counts: rows in the page, requests, lines of a log. `make ui-budgets` does the same with a million
 * runs and 5,000 steps, and prints how long things took.
 */
const RUNS = Number(process.env.BUDGET_RUNS ?? 3_000);
const STEPS = Number(process.env.BUDGET_STEPS ?? 300);
const LINES = Number(process.env.BUDGET_LINES ?? 20_000);
// A grid of so many steps and runs, and a workflow that is opened folded. The small ones of a test do not fold.
const [GRID_STEPS, GRID_RUNS, FOLDED] = process.env.BUDGET_RUNS ? [500, 50, 20_000] : [20, 3, 0];
const [ROWS_MAX, LINES_MAX, STEPS_MAX, FILES_MAX, FIRST_REQUESTS_MAX, CACHED_REQUESTS_MAX, FILTER_REQUESTS_MAX, HEAP_MAX] = [120, 400, 200, 60, 15, 15, 6, 150];

/** From now on, the longest gap between two frames, and how many were longer than 50 ms. */
const watchFrames = () => {
  window.frames50 = { long: 0, longest: 0, frames: 0 };
  let last = performance.now();
  const tick = (now) => {
    const gap = now - last;
    last = now;
    window.frames50.frames += 1;
    window.frames50.longest = Math.max(window.frames50.longest, Math.round(gap));
    if (gap > 50) window.frames50.long += 1;
    window.watching = requestAnimationFrame(tick);
  };
  window.watching = requestAnimationFrame(tick);
};
const framesSeen = () => {
  cancelAnimationFrame(window.watching);
  return window.frames50;
};

export default async function journey({ page, context, base, api, ask, until }) {
  const session = await context.newCDPSession(page);
  /** What is in use after a collection, in MB. */
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    return Math.round((await session.send("Runtime.getHeapUsage")).usedSize / 1e6);
  };
  const took = {};
  // The time of a processor, which does not depend on what else the machine does.
  await session.send("Performance.setTimeDomain", { timeDomain: "threadTicks" }).catch(() => {});
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => (await session.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration")?.value ?? 0;
  const timed = async (what, work) => {
    const [begin, worked] = [performance.now(), await busy()];
    await work();
    const [wall, page] = [performance.now() - begin, (await busy()) - worked];
    // A new page begins to count at zero.
    took[what] = { ms: Math.round(wall), "of the page's processor": Math.round((page < 0 ? await busy() : page) * 1000) };
  };
  const most = (what, count, limit) => {
    took[`${what} (at most ${limit})`] = count;
    if (count > limit) throw new Error(`${what}: ${count}, and at most ${limit} are allowed`);
  };
  for (let left = RUNS; left > 0; left -= 100_000)
    await ask("sql", {
      statement: `insert into foliot.history (id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task)
        select foliot.new_id(now()), now(), now(), now(), now(), 1, 1, 0, 0, case when n % 50 = 0 then 'failed' else 'succeeded' end, 'mail', 'send_' || n % 7
        from generate_series(1, ${Math.min(left, 100_000)}) n`,
    });
  await ask("sql", { statement: `do $$ begin assert (select count(*) from foliot.history) >= ${RUNS}, 'the runs are not there'; end $$` });
  const talkative = await api("POST", "/v1/jobs", { name: "talks", command: `seq 1 ${LINES}` });
  const workflow = await api("POST", "/v1/workflows", { name: "wide", steps: Array.from({ length: STEPS }, (_, index) => ({ key: `s${index}`, task: "wait", signal: {}, after: index < 20 ? [] : [`s${index - 20}`] })) });
  await until(async () => (await api("GET", `/v1/runs/${talkative.id}`)).state === "succeeded", "the run has written its log");

  let [requests, files] = [0, 0];
  page.on("request", (request) => (request.url().includes("/v1/") ? (requests += 1) : (files += 1)));
  await timed("list of runs: first rows", async () => {
    await page.goto(`${base}/ui/runs`);
    await page.getByRole("row").nth(5).waitFor();
  });
  await page.waitForLoadState("load");
  most("requests to the API until the first rows", requests, FIRST_REQUESTS_MAX);
  most("files until the first rows", files, FILES_MAX);
  await page.evaluate(watchFrames);
  for (let turn = 0; turn < 12; turn += 1) {
    await page.mouse.move(700, 600);
    await page.mouse.wheel(0, 3_000);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }
  took["frames while scrolling"] = await page.evaluate(framesSeen);
  most("rows in the page after scrolling", await page.getByRole("row").count(), ROWS_MAX);
  most("MB of heap after scrolling", await heap(), HEAP_MAX);
  await page.evaluate(() => document.querySelector("main")?.scrollTo(0, 0) ?? scrollTo(0, 0));
  const field = page.getByRole("combobox", { name: "Filter" });
  await field.fill("state:failed task:send_3");
  requests = 0;
  await timed("filter to first rows", async () => {
    await field.press("Enter");
    await until(async () => page.evaluate(() => {
      const rows = [...document.querySelectorAll("[role=row]")].slice(1);
      return rows.length > 3 && rows.every((row) => /send_3/.test(row.textContent) && /Failed/.test(row.textContent));
    }), "only rows that fit");
  });
  most("requests to the API of a filter", requests, FILTER_REQUESTS_MAX);
  if (process.env.BUDGET_RUNS)
    for (const path of ["/v1/runs?state=failed&task=send_3&limit=100", "/v1/runs/facets?state=failed&task=send_3", "/v1/runs/histogram?state=failed&task=send_3&buckets=60"])
      await timed(`${path}`, () => api("GET", path));
  requests = 0;
  await timed("to a page and back with what is cached", async () => {
    await page.getByRole("link", { name: "Calendars" }).click();
    await page.getByRole("heading", { level: 1, name: "Calendars" }).waitFor();
    await page.goBack();
    await page.getByRole("row").nth(3).waitFor();
  });
  most("requests to the API of two changes of page", requests, CACHED_REQUESTS_MAX);
  await timed(`log of ${LINES} lines: its end`, async () => {
    await page.goto(`${base}/ui/runs/${talkative.id}/log`);
    await page.getByText(String(LINES), { exact: true }).first().waitFor();
  });
  most("elements of the log in the page", await page.locator("main [data-line]").count(), LINES_MAX);
  await timed(`list of ${STEPS} steps`, async () => {
    await page.goto(`${base}/ui/workflows/${workflow.id}/steps`);
    await page.getByRole("row").nth(5).waitFor();
  });
  most("steps in the page", await page.getByRole("row").count(), STEPS_MAX);
  await page.goto(`${base}/ui/workflows/${workflow.id}/graph`);
  const canvas = page.locator("main canvas").first();
  await timed(`graph of ${STEPS} steps laid out`, () => canvas.waitFor());
  took["elements in the page with the graph"] = await page.locator("*").count();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.evaluate(watchFrames);
  await timed("120 steps of a pan", () => page.mouse.move(box.x + 60, box.y + 60, { steps: 120 }));
  took["frames of the pan"] = await page.evaluate(framesSeen);
  await page.mouse.up();

  const steps = Array.from({ length: GRID_STEPS }, (_, index) => ({ key: `g${index}`, task: "wait", signal: {} }));
  for (let number = 0; number < GRID_RUNS; number += 1) await api("POST", "/v1/workflows", { name: "gridded", steps });
  await timed(`grid of ${GRID_STEPS} steps and ${GRID_RUNS} runs`, async () => {
    await page.goto(`${base}/ui/workflows/by-name/gridded`);
    await page.locator("main canvas").first().waitFor();
  });
  if (FOLDED) {
    const large = await api("POST", "/v1/workflows", { name: "large", steps: Array.from({ length: FOLDED }, (_, index) => ({ key: `s${index}`, task: "wait", signal: {}, after: index < 200 ? [] : [`s${index - 200}`] })) });
    await timed(`graph of ${FOLDED} steps, folded`, async () => {
      await page.goto(`${base}/ui/workflows/${large.id}/graph`);
      await page.locator("main canvas").first().waitFor();
    });
    took["elements in the page with the large graph"] = await page.locator("*").count();
    took["MB of heap with the large graph"] = await heap();
  }
  if (process.env.BUDGET_RUNS || process.env.BUDGET_LINES) process.stderr.write(`${JSON.stringify({ runs: RUNS, steps: STEPS, ...took }, null, 1)}\n`);
}
