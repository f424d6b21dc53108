/** An earlier version of a job is restored while somebody else changes it; a deleted job is made again. */
export default async function journey({ page, base, api, until, look }) {
  await api("POST", "/v1/jobs", { name: "report", cron: "0 3 * * *", command: "echo <b>one</b>", tags: ["night"] });
  await api("PATCH", "/v1/jobs/report", { cron: "0 4 * * *", payload: { command: "echo two" } });
  await page.goto(`${base}/ui/jobs/report/versions`);
  const list = page.getByRole("list", { name: "Versions of report" });
  await list.getByText("0 4 * * *").waitFor();
  await list.getByText("echo <b>one</b>").waitFor();
  await list.getByText("The job was created.").waitFor();
  await look("versions");
  await list.getByRole("button", { name: "Restore version 1" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Restore version 1" }).waitFor();
  await look("restore");
  await api("PATCH", "/v1/jobs/report", { priority: 7 });
  await page.getByRole("dialog").getByRole("button", { name: "Restore", exact: true }).click();
  const conflict = page.getByRole("dialog", { name: /changed it meanwhile/ });
  await conflict.getByRole("row", { name: /Priority/ }).waitFor();
  await look("three versions of a job");
  await conflict.getByRole("button", { name: "Restore nevertheless" }).click();
  await list.getByText("Version 4").waitFor();
  await until(async () => (await api("GET", "/v1/jobs/report")).schedule.cron === "0 3 * * *", "the first version is current again");
  await page.getByRole("button", { name: "More actions" }).first().click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await until(async () => (await api("GET", "/v1/jobs")).items.length === 0, "the job is deleted");
  await page.goto(`${base}/ui/jobs?deleted=1`);
  await page.getByRole("dialog", { name: "Deleted jobs" }).getByRole("link", { name: "report" }).waitFor();
  await look("deleted jobs");
  await page.goto(`${base}/ui/jobs/report`);
  await page.getByRole("heading", { level: 1, name: "report was deleted" }).waitFor();
  await look("a deleted job");
  await page.getByRole("button", { name: "Make it again" }).click();
  await page.getByText("report is back.").waitFor();
  await page.getByRole("heading", { level: 1, name: /^report/ }).getByText("active", { exact: false }).waitFor();
  await until(async () => (await api("GET", "/v1/jobs/report")).version === 5, "the job is there again");
}
