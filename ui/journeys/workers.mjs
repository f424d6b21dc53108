/** A worker's slots lead to its runs; a drain is taken back; others are drained by label until they are safe to stop. */
const GPU = "11111111-1111-4111-8111-111111111111";
const GONE = "22222222-2222-4222-8222-222222222222";

export default async function journey({ page, base, api, ask, until, look }) {
  const { id } = await api("POST", "/v1/jobs", { name: "<i>long</i>", command: "sleep 600" });
  await until(async () => (await api("GET", `/v1/runs/${id}`)).state === "running", "the run starts");
  const [worker] = (await api("GET", "/v1/workers")).items;
  await ask("sql", {
    statement: `insert into foliot.workers (id, name, queues, tasks, started_at, beat_at, expires_at, labels)
      values ('${GPU}', 'gpu-1', '{"heavy": 200}', '{shell}', now(), now(), now() + interval '1 hour', '{"pool": "gpu", "rack": "b7"}')`,
  });
  await ask("sql", {
    statement: `insert into foliot.gone_workers (id, name, queues, labels, started_at, gone_at, is_dead, lost, lost_runs)
      values ('${GONE}', 'gpu-0', '{"heavy": 2}', '{}', now() - interval '1 day', now(), true, 1, array['${id}'::uuid])`,
  });
  await page.goto(`${base}/ui/workers`);
  const card = page.getByRole("listitem").filter({ hasText: worker.name });
  await card.getByRole("link", { name: /<i>long<\/i>, shell/ }).waitFor();
  await page.getByText("lost 1 attempt").waitFor();
  await look("workers");
  await card.getByRole("button", { name: `More actions: ${worker.name}` }).click();
  await page.getByRole("menuitem", { name: "Drain" }).click();
  await page.getByText(`${worker.name} will take no more runs.`).locator("..").getByRole("button", { name: "Undo" }).click();
  await page.getByText(`${worker.name} continues as before.`).waitFor();
  await page.getByRole("button", { name: "Drain by label" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("checkbox", { name: /pool=gpu/ }).check();
  await dialog.getByText(/^1 of \d workers?:$/).waitFor();
  await look("drain by label");
  await dialog.getByRole("button", { name: "Drain 1 worker" }).click();
  await page.getByRole("listitem").filter({ hasText: "gpu-1" }).getByText("Safe to stop").waitFor();
  if ((await api("GET", `/v1/workers/${worker.id}`)).health !== "healthy") throw new Error("an undone drain was sent");
  await card.getByRole("link", { name: worker.name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: worker.name }).waitFor();
  await page.getByRole("table", { name: "In its slots" }).getByRole("row", { name: /long/ }).waitFor();
  await look("a worker");
  await page.goto(`${base}/ui/workers/${GONE}`);
  await page.getByText("Lost with it: 1").waitFor();
  await page.getByRole("link", { name: id }).waitFor();
  await look("a worker that died");
  await ask("sql", { statement: `delete from foliot.workers where id = '${GPU}'` });
  await api("POST", `/v1/runs/${id}/cancel`, { force: true });
}
