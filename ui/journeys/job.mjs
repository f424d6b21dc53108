/** A recurring job is run, paused with a reason, resumed by undo, and its deletion is taken back. */
export default async function journey({ page, base, api, until, look }) {
  await api("POST", "/v1/jobs", { name: "sync", every: "1s", command: "echo synced", tags: ["crm"] });
  await page.goto(`${base}/ui/jobs`);
  await page.getByRole("link", { name: "sync", exact: true }).click();
  await page.getByText("Every second").waitFor();
  await page.getByRole("slider", { name: /ticks? of sync/ }).waitFor();
  await look("ticks");
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByText("It runs now").waitFor();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("textbox", { name: /Reason/ }).fill("seen enough");
  await look("pause");
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByText("sync is paused.").waitFor();
  await page.getByText(/Seen enough/).first().waitFor();
  await page.getByRole("button", { name: "Undo" }).last().click();
  await until(async () => (await api("GET", "/v1/jobs/sync")).status === "active", "undo resumes the job");
  await page.getByRole("link", { name: "Schedule", exact: true }).click();
  await look("schedule");
  await page.getByRole("link", { name: "Runs", exact: true }).last().click();
  await page.getByRole("row", { name: /sync/ }).first().waitFor();
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByText(/sync will be deleted/).waitFor();
  await page.getByRole("button", { name: "Undo" }).last().click();
  await page.getByText("sync stays.").waitFor();
  if ((await api("GET", "/v1/jobs/sync")).status !== "active") throw new Error("the job is not as before");
}
