/** An empty installation greets; each of three buttons creates what it says; the overview and runs appear without a reload. */
export default async function journey({ page, base, api, ask, until, look }) {
  const create = (title) => page.getByRole("region", { name: title }).getByRole("button", { name: "Create it" }).click();
  await page.goto(base);
  await until(() => page.url().endsWith("/ui/"), "the root leads to the UI");
  await page.getByRole("heading", { name: /Nothing has been scheduled yet/ }).waitFor();
  await look("welcome");
  await create("A Python task");
  await page.getByRole("button", { name: "See it run" }).click();
  await page.getByRole("heading", { level: 1, name: "first-task" }).waitFor();
  await until(async () => (await api("GET", "/v1/runs?state=succeeded")).items.some((run) => run.name === "first-task"), "the task succeeds");

  await ask("empty");
  await page.goto(`${base}/ui/`);
  await create("A workflow");
  await page.getByRole("button", { name: "See it run" }).click();
  await page.getByRole("heading", { level: 1, name: /breakfast/ }).waitFor();
  await until(async () => (await api("GET", "/v1/workflows?name=breakfast")).items[0]?.status === "completed", "the workflow completes");

  await ask("empty");
  await page.goto(`${base}/ui/`);
  await create("A command every ten seconds");
  await page.getByText("Created.").waitFor();
  await page.getByRole("heading", { name: /All ticks on time/ }).waitFor();
  await page.getByRole("slider", { name: /Ended per minute/ }).waitFor();
  await look("overview");
  await page.getByRole("button", { name: "See it run" }).click();
  await page.getByRole("row", { name: /hello/ }).first().waitFor();
  await page.getByRole("link", { name: "Jobs", exact: true }).first().click();
  await page.getByRole("row", { name: /Every 10 seconds/ }).waitFor();
  await look("jobs");
}
