/** A job is created from its simulation; its schedule is edited, and somebody else's edit at the same time is not lost. */
export default async function journey({ page, base, api, until, look }) {
  await page.goto(`${base}/ui/jobs/new`);
  const field = page.getByRole("textbox", { name: "Cron expression" });
  await field.fill("30 25 * * *");
  await page.getByText(/hour: .*25/).first().waitFor();
  await look("mistake");
  await page.getByLabel("Time zone", { exact: true }).fill("Europe/Zurich");
  await field.fill("30 2 * * MON-FRI");
  await page.getByText("5 fires a week").waitFor();
  await page.getByText(/Clocks go forward by 60 minutes/).waitFor();
  await page.getByRole("textbox", { name: /^Name/ }).fill("<b>nightly report");
  await page.getByRole("textbox", { name: "Command" }).fill("echo done");
  await look("new");
  await page.getByRole("button", { name: "Create", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByText(/is scheduled/).waitFor();
  await page.getByRole("heading", { name: /<b>nightly/ }).waitFor();
  const job = (await api("GET", "/v1/jobs?limit=1")).items[0];
  await page.goto(`${base}/ui/jobs/${job.id}/schedule?edit=1`);
  await page.getByText("as many as now").waitFor();
  await page.getByRole("textbox", { name: "Cron expression" }).fill("30 2 * * MON,WED");
  await page.getByText("3 fewer a week than now").waitFor();
  await api("PATCH", `/v1/jobs/${job.id}`, { timezone: "Europe/Berlin", cron: "30 3 * * *" });
  await page.getByRole("button", { name: "Save" }).click();
  const dialog = page.getByRole("dialog", { name: /changed it meanwhile/ });
  await dialog.waitFor();
  await look("three versions");
  await dialog.getByRole("button", { name: /with my changes/ }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The schedule has changed.").waitFor();
  await until(async () => {
    const { schedule } = await api("GET", `/v1/jobs/${job.id}`);
    return schedule.cron === "30 2 * * MON,WED" && schedule.timezone === "Europe/Berlin";
  }, "both changes are there");
}
