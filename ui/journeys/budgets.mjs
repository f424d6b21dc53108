/**
 * What the UI costs, as counts: rows in the page, requests, lines of a log. `make ui-budgets` does the same with a million
 * runs and 5,000 steps, and prints how long things took.
 */
const RUNS = Number(process.env.BUDGET_RUNS ?? 3_000);
const STEPS = Number(process.env.BUDGET_STEPS ?? 300);
const [ROWS_MAX, LINES_MAX, STEPS_MAX, FILES_MAX, FIRST_REQUESTS_MAX, CACHED_REQUESTS_MAX] = [120, 400, 200, 60, 15, 15];

export default async function journey({ page, base, api, ask, until }) {
  const took = {};
  const timed = async (what, work) => {
    const begin = performance.now();
    await work();
    took[what] = Math.round(performance.now() - begin);
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
  const talkative = await api("POST", "/v1/jobs", { name: "talks", command: "seq 1 20000" });
  const workflow = await api("POST", "/v1/workflows", { name: "wide", steps: Array.from({ length: STEPS }, (_, index) => ({ key: `s${index}`, task: "wait", signal: {}, after: index < 20 ? [] : [`s${index - 20}`] })) });
  await until(async () => (await api("GET", `/v1/runs/${talkative.id}`)).state === "succeeded", "the run has written its log");

  let [requests, files] = [0, 0];
  page.on("request", (request) => (request.url().includes("/v1/") ? (requests += 1) : (files += 1)));
  await timed("list of runs: first rows, ms", async () => {
    await page.goto(`${base}/ui/runs`);
    await page.getByRole("row").nth(5).waitFor();
  });
  await page.waitForLoadState("load");
  most("requests to the API until the first rows", requests, FIRST_REQUESTS_MAX);
  most("files until the first rows", files, FILES_MAX);
  // Chromium measures frames only in a visible window, so that scrolling is judged by what stays in the page.
  for (let turn = 0; turn < 12; turn += 1) {
    await page.mouse.move(700, 600);
    await page.mouse.wheel(0, 3_000);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }
  most("rows in the page after scrolling", await page.getByRole("row").count(), ROWS_MAX);
  await timed("filter to first rows, ms", async () => {
    await page.goto(`${base}/ui/runs?q=${encodeURIComponent("state:failed task:send_3")}`);
    await page.getByRole("row").nth(3).waitFor();
  });
  requests = 0;
  await timed("to a page and back with what is cached, ms", async () => {
    await page.getByRole("link", { name: "Calendars" }).click();
    await page.getByRole("heading", { level: 1, name: "Calendars" }).waitFor();
    await page.goBack();
    await page.getByRole("row").nth(3).waitFor();
  });
  most("requests to the API of two changes of page", requests, CACHED_REQUESTS_MAX);
  await timed("log of 20,000 lines: its end, ms", async () => {
    await page.goto(`${base}/ui/runs/${talkative.id}/log`);
    await page.getByText("20000", { exact: true }).first().waitFor();
  });
  most("elements of the log in the page", await page.locator("main [data-line]").count(), LINES_MAX);
  await timed(`list of ${STEPS} steps, ms`, async () => {
    await page.goto(`${base}/ui/workflows/${workflow.id}/steps`);
    await page.getByRole("row").nth(5).waitFor();
  });
  most("steps in the page", await page.getByRole("row").count(), STEPS_MAX);
  await page.goto(`${base}/ui/workflows/${workflow.id}/graph`);
  await timed(`graph of ${STEPS} steps laid out, ms`, async () => {
    await page.locator("main canvas").first().waitFor();
  });
  took["elements in the page with the graph"] = await page.locator("*").count();
  if (process.env.BUDGET_RUNS) process.stderr.write(`${JSON.stringify({ runs: RUNS, steps: STEPS, ...took }, null, 1)}\n`);
}
