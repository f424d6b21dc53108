/** Two tabs read one stream; when the one that reads it is closed, the other goes on. */
export default async function journey({ page, context, base, open, api, until, equip }) {
  const streams = async () => (await (await fetch(`${open}/v1/schedulers`)).json()).streams.events;
  await page.goto(`${base}/ui/runs`);
  await page.getByRole("button", { name: "Live" }).waitFor();
  const second = await context.newPage();
  await equip(second);
  await second.goto(`${base}/ui/runs`);
  await second.getByRole("button", { name: "Live" }).waitFor();
  await until(async () => (await streams()) === 1, "there is one stream");
  await api("POST", "/v1/jobs", { name: "seen-by-both", command: "echo both" });
  for (const tab of [page, second]) {
    const row = tab.getByRole("row", { name: /seen-by-both/ });
    await until(async () => (await row.count()) || (await tab.getByRole("button", { name: /1 new/ }).count()), "the run is announced");
  }
  await page.close();
  await api("POST", "/v1/jobs", { name: "after", command: "echo after" });
  await until(async () => (await second.getByRole("row", { name: /after/ }).count()) || (await second.getByRole("button", { name: /new/ }).count()), "the other tab goes on");
  await until(async () => (await streams()) === 1, "there is still one stream");
}
