export const isPhone = true;

/** Somebody with a phone lets a run start. */
export default async function journey({ page, base, api, until, look }) {
  const { id } = await api("POST", "/v1/jobs", { name: "refund", command: "echo refunded", signal: { timeout_seconds: 3600 } });
  await api("POST", "/v1/jobs", { name: "yearly", cron: "0 0 1 1 *", timezone: "Europe/Berlin", command: "echo happy" });
  await page.goto(`${base}/ui/runs`);
  await look("runs on a phone");
  await page.getByRole("link", { name: "refund" }).click();
  await page.getByRole("button", { name: /Approve/ }).waitFor();
  await look("why on a phone");
  await page.getByRole("button", { name: /Approve/ }).click();
  await page.getByRole("textbox", { name: /Note/ }).fill("fine with me");
  await look("approval on a phone");
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await until(async () => (await api("GET", `/v1/runs/${id}`)).state === "succeeded", "the run ends");
  await page.getByText("Succeeded").first().waitFor();
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("row", { name: /yearly/ }).waitFor();
  await look("jobs on a phone");
}
