/** A queue is paused by keys and resumed at its closed gate; its limits change under one's hands; its keys are shown. */
export default async function journey({ page, base, api, until, look }) {
  const hostile = `<img src=x onerror="document.title='hacked'">`;
  await page.goto(`${base}/ui/queues`);
  await page.getByRole("row", { name: /default/ }).waitFor();
  const ids = [];
  for (let number = 0; number < 3; number += 1)
    ids.push((await api("POST", "/v1/jobs", { queue: "mail", command: "sleep 600", concurrency: { key: hostile, limit: 1 } })).id);
  await page.getByRole("button", { name: "1 new" }).click();
  const row = page.getByRole("row", { name: /mail/ });
  await row.getByText("No worker").waitFor();
  await look("queues");
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await page.getByRole("link", { name: "mail", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: /mail/ }).waitFor();
  const keys = page.getByRole("region", { name: "Concurrency" });
  await keys.getByText(hostile).waitFor();
  await keys.getByText("1 of 1").waitFor();
  await keys.getByText("2 wait").waitFor();
  await page.getByText("No live worker serves the queue 'mail'.").first().waitFor();
  await look("a queue without a worker");

  // A pause with a reason and an end, which the first closed gate offers to end.
  await page.keyboard.press("p");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("<b>the partner</b> is down");
  await dialog.getByLabel("Until").selectOption("8h");
  await page.keyboard.press("Enter");
  await page.getByText(/None of its runs start until/).waitFor();
  await page.getByText(/paused since .* by local/).waitFor();
  await page.getByText("<b>the partner</b> is down").first().waitFor();
  await look("a paused queue");
  await page.getByRole("button", { name: "Resume the queue" }).click();
  await page.getByRole("button", { name: "Pause …" }).waitFor();
  await until(async () => (await api("GET", "/v1/pauses")).items.length === 0, "the queue is resumed");

  // Somebody else changes the limits while the dialog is open.
  await page.getByRole("button", { name: "Limits …" }).click();
  const running = dialog.getByLabel("Runs at once");
  await running.fill("none");
  await dialog.getByText("Write a whole number from 1").first().waitFor();
  await running.fill("7");
  await api("PATCH", "/v1/queues/mail", { max_running: 3, max_depth: 500 });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("They are now: 3 at once, 500 waiting.").waitFor();
  if ((await running.inputValue()) !== "7") throw new Error("what was typed is gone");
  await look("limits that have changed meanwhile");
  await dialog.getByLabel("Runs that may wait").fill("1000");
  await dialog.getByRole("button", { name: "Save mine" }).click();
  await page.getByText("The limits have changed.").waitFor();
  const limits = await api("GET", "/v1/queues/mail");
  if (limits.max_running !== 7 || limits.max_depth !== 1000) throw new Error(`the limits are ${JSON.stringify(limits)}`);
  for (const id of ids) await api("POST", `/v1/runs/${id}/cancel`);
  await page.goto(`${base}/ui/queues/nothing`);
  await page.getByRole("heading", { level: 1, name: "There is no queue here" }).waitFor();
}
