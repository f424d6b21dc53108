/** An empty installation greets; a button creates a job; the overview and its runs appear without a reload. */
export default async function journey({ page, base, until, look }) {
  await page.goto(base);
  await until(() => page.url().endsWith("/ui/"), "the root leads to the UI");
  await page.getByRole("heading", { name: /Nothing has been scheduled yet/ }).waitFor();
  await look("welcome");
  await page.getByRole("button", { name: "Create it" }).first().click();
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
