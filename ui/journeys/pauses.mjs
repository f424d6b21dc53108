/** A queue is paused by keys alone, changed, ended, and paused again by Undo; a failing task's circuit is closed. */
export default async function journey({ page, base, api, ask, until, look }) {
  await api("POST", "/v1/jobs", { name: "nightly", cron: "0 3 * * *", command: "true" });
  await page.goto(`${base}/ui/pauses`);
  await page.getByRole("heading", { level: 2, name: "Nothing is paused" }).waitFor();
  await look("nothing is paused");
  await page.keyboard.press("p");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("What").selectOption("job");
  await dialog.getByLabel("Name").fill("nihgtly");
  await dialog.getByLabel("Reason").fill("<b>holidays</b>");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").waitFor();
  if ((await dialog.getByLabel("Reason").inputValue()) !== "<b>holidays</b>") throw new Error("what was typed is gone");
  await look("a pause of a job that does not exist");
  await dialog.getByLabel("Name").fill("nightly");
  await page.keyboard.press("Enter");
  const row = page.getByRole("listitem").filter({ hasText: "nightly" });
  await row.getByText("<b>holidays</b>").waitFor();
  await row.getByText("by local").waitFor();
  await row.getByRole("button", { name: "Change the pause of nightly" }).click();
  await dialog.getByLabel("Until").selectOption("8h");
  await dialog.getByRole("button", { name: "Save" }).click();
  await row.getByText("in 7 h").waitFor();
  await row.getByRole("button", { name: "End the pause of nightly" }).click();
  await row.waitFor({ state: "detached" });
  await page.getByText("nightly continues.").locator("..").getByRole("button", { name: "Undo" }).click();
  await row.getByText("<b>holidays</b>").waitFor();
  const { items } = await api("GET", "/v1/pauses");
  if (items.length !== 1 || !items[0].until_at) throw new Error(`undoing has not restored the pause: ${JSON.stringify(items)}`);
  await ask("sql", { statement: "insert into foliot.circuits (task, failures, open_until, updated_at) values ('send_mail', 12, now() + interval '1 hour', now())" });
  const circuit = page.getByRole("listitem").filter({ hasText: "send_mail" });
  await circuit.getByText("12 failures in a row").waitFor();
  await look("a pause and an open circuit");
  await circuit.getByRole("button", { name: "Close circuit of send_mail" }).click();
  await circuit.waitFor({ state: "detached" });
  await until(async () => (await api("GET", "/v1/circuits")).items.every((one) => !one.open_until), "the circuit is closed");
}
