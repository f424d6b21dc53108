/** Runs that wait for different reasons: each page leads to what is in the way, or opens the gate. */
export default async function journey({ page, base, api, ask, until, look }) {
  // A key: the page links the run that has its place.
  const holder = await api("POST", "/v1/jobs", { name: "holds", command: "sleep 60", concurrency: { key: "printer", limit: 1 } });
  await until(async () => (await api("GET", `/v1/runs/${holder.id}`)).state === "running", "the first run has the place");
  const second = await api("POST", "/v1/jobs", { name: "waits", command: "true", concurrency: { key: "printer", limit: 1 } });
  await page.goto(`${base}/ui/runs/${second.id}`);
  await page.getByText("These runs have its places:").waitFor();
  await look("a key");
  await page.getByRole("link", { name: `…${holder.id.slice(-8)}` }).click();
  await page.getByRole("heading", { level: 1, name: /holds/ }).waitFor();
  await api("POST", `/v1/runs/${holder.id}/cancel`, {});

  // The limit of the queue is raised.
  await api("PATCH", "/v1/queues/default", { max_running: 1 });
  const busy = await api("POST", "/v1/jobs", { name: "busy", command: "sleep 60" });
  await until(async () => (await api("GET", `/v1/runs/${busy.id}`)).state === "running", "one run is running");
  const third = await api("POST", "/v1/jobs", { name: "third", command: "true" });
  await page.goto(`${base}/ui/runs/${third.id}/why`);
  await page.getByRole("button", { name: /Change the limit/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").first().fill("5");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("Succeeded").first().waitFor();
  await api("POST", `/v1/runs/${busy.id}/cancel`, {});

  // A signal, with a note.
  const asks = await api("POST", "/v1/jobs", { name: "asks", command: "echo approved", signal: {} });
  await page.goto(`${base}/ui/runs/${asks.id}`);
  await page.getByRole("button", { name: "Approve …" }).click();
  await dialog.getByLabel("Note").fill("<b>go</b>");
  await dialog.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Succeeded").first().waitFor();

  // A circuit breaker is closed by hand.
  await ask("sql", { statement: "insert into foliot.circuits (task, failures, open_until, updated_at) values ('shell', 5, now() + interval '1 hour', now())" });
  const waits = await api("POST", "/v1/jobs", { name: "behind", command: "true" });
  await page.goto(`${base}/ui/runs/${waits.id}/why`);
  await page.getByRole("button", { name: "Let it run now" }).click();
  await page.getByText("The circuit breaker is closed").waitFor();
  await page.getByText("Succeeded").first().waitFor();

  // A lost attempt, and its result that came too late.
  const late = await api("POST", "/v1/jobs", { name: "late", command: "sleep 0.1" });
  await until(async () => (await api("GET", `/v1/runs/${late.id}`)).state === "succeeded", "a run has ended");
  await ask("sql", {
    statement: `insert into foliot.attempts (run_id, token, attempt, worker_id, started_at, finished_at, outcome, refused_at)
      select id, token - 1, 1, worker_id, started_at - interval '20 seconds', started_at - interval '5 seconds', 'lost', started_at + interval '40 milliseconds' from foliot.history where id = '${late.id}'`,
  });
  await page.goto(`${base}/ui/runs/${late.id}/attempts`);
  await page.getByText("Attempt 1: its worker was lost").waitFor();
  await page.getByText("Late result of attempt 1 refused").waitFor();
  await look("a late result");
}
