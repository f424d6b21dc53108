/** A task is run with the form that its parameters make, by fields and as JSON; it is paused, disabled, and its circuit closed. */
export default async function journey({ page, base, api, ask, until, look }) {
  await page.goto(`${base}/ui/tasks`);
  await page.getByRole("row", { name: /shell/ }).waitFor();
  await page.getByRole("button", { name: "Built-in", exact: true }).click();
  await page.getByRole("searchbox").fill("tests and benchmarks");
  await page.getByRole("row", { name: /shell/ }).waitFor({ state: "detached" });
  await look("tasks");
  await page.getByRole("link", { name: "simulate", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: /simulate/ }).waitFor();
  await page.getByRole("table", { name: "Parameters" }).getByText("fail_rate").waitFor();
  await look("a task");

  // What is wrong is said at its field, and what was typed stays in both forms.
  await page.keyboard.press("t");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("fail_rate").fill("2");
  await dialog.getByLabel("execution_time_ms").fill("5");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await dialog.getByText("It must be at most 1.").waitFor();
  await look("a field with an error");
  await dialog.getByLabel("fail_rate").fill("1");
  await dialog.getByRole("button", { name: "JSON" }).click();
  const json = dialog.getByRole("textbox", { name: "Payload" });
  if (JSON.stringify(JSON.parse(await json.inputValue())) !== '{"execution_time_ms":5,"fail_rate":1}') throw new Error(`the JSON is ${await json.inputValue()}`);
  await json.fill('{"fail_rate": 1, "note": "<b>more</b>"}');
  await dialog.getByText("Name, queue and delay").click();
  await dialog.getByLabel("Name").fill("<i>by hand</i>");
  await dialog.getByLabel("Queue").fill("no such name");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await dialog.locator("[aria-invalid]").waitFor();
  await dialog.getByLabel("Queue").fill("default");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("<i>by hand</i> runs.").waitFor();
  const [run] = (await api("GET", "/v1/runs")).items;
  const { payload } = await api("GET", `/v1/runs/${run.id}`);
  if (payload.note !== "<b>more</b>") throw new Error(`the payload is ${JSON.stringify(payload)}`);
  await api("POST", "/v1/jobs", { task: "simulate", payload: { fail_rate: 1 }, retries: 0 });
  await page.getByRole("list", { name: "Failed for good" }).getByRole("link").first().waitFor();

  // A pause, a circuit, and the switch of a built-in task.
  await page.keyboard.press("p");
  await dialog.getByLabel("Reason").fill("not now");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause …" }).waitFor();
  await ask("sql", { statement: "insert into foliot.circuits (task, failures, open_until, updated_at) values ('simulate', 12, now() + interval '1 hour', now()) on conflict (task) do update set failures = 12, open_until = excluded.open_until" });
  const circuit = page.getByRole("region", { name: "Circuit breaker" });
  await circuit.getByText("12 failures in a row").waitFor();
  await look("an open circuit");
  await circuit.getByRole("button", { name: "Close circuit" }).click();
  await circuit.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Disable" }).click();
  await page.getByText("simulate is disabled.").locator("..").getByRole("button", { name: "Undo" }).click();
  await page.getByText("simulate can be used again.").waitFor();
  await until(async () => !(await api("GET", "/v1/tasks/simulate")).is_disabled, "the task is enabled");
  await page.goto(`${base}/ui/tasks/nothing`);
  await page.getByRole("heading", { level: 1, name: "There is no task here" }).waitFor();
}
