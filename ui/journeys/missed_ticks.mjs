/** Missed ticks are dragged over and run after a preview, by mouse and by keyboard; two runs are compared. */
export default async function journey({ page, base, api, ask, until, look }) {
  const job = await api("POST", "/v1/jobs", { name: "hourly", cron: "0 * * * *", command: "echo one", timezone: "UTC" });
  await ask("sql", { statement: `insert into foliot.ticks (job_id, tick_at, noted_at, reason) select '${job.id}', date_trunc('hour', now()) - n * interval '1 hour', now(), 'missed' from generate_series(1, 5) n` });
  await page.goto(`${base}/ui/jobs/hourly`);
  const strip = page.getByRole("slider", { name: "The last 5 ticks of hourly" });
  await strip.waitFor();
  const box = await strip.boundingBox();
  const at = (cell) => [box.x + ((60 - 5 + cell + 0.5) / 60) * box.width, box.y + box.height / 2];
  await page.mouse.move(...at(1));
  await page.mouse.down();
  await page.mouse.move(...at(2));
  await page.mouse.move(...at(3));
  await page.mouse.up();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: /^Run 3 / }).waitFor();
  await look("three ticks to run");
  await dialog.getByRole("button", { name: /^Run 3 / }).click();
  await until(async () => (await api("GET", "/v1/jobs/hourly/runs?limit=10")).items.filter((run) => run.state === "succeeded").length === 3, "three ticks have run");
  // The keyboard does the same: the last cell and the one before it.
  await page.reload();
  await page.getByRole("slider", { name: /ticks of hourly/ }).focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await api("POST", "/v1/jobs", { name: "fails", command: "echo <b>no</b>; exit 3", retries: 0 });
  await until(async () => (await api("GET", "/v1/runs?state=failed&limit=5")).items.length === 1, "a run fails");
  await page.goto(`${base}/ui/runs`);
  const rows = page.getByRole("row");
  await rows.filter({ hasText: "fails" }).getByRole("checkbox").check();
  await rows.filter({ hasText: "hourly" }).first().getByRole("checkbox").check();
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("heading", { level: 1, name: "Compare two runs" }).waitFor();
  await page.getByRole("row", { name: /payload\.command.*exit 3.*echo one/ }).waitFor();
  await look("two runs");
  await page.getByRole("button", { name: "Swap sides" }).click();
  await page.getByRole("row", { name: /payload\.command.*echo one.*exit 3/ }).waitFor();
}
