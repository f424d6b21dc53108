/** The server is killed and comes back: the page says so, keeps what it shows, and heals by itself. */
export const needsToken = true;

export default async function journey({ page, base, api, until, ask, look }) {
  await api("POST", "/v1/jobs", { name: "before", command: "true", delay_seconds: 3600 });
  const { token } = await api("POST", "/v1/tokens", { name: "ann", role: "operator" });
  await page.goto(`${base}/ui/runs`);
  await page.getByLabel(/Token/).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("row", { name: /before/ }).waitFor();
  await page.getByRole("button", { name: "Live" }).waitFor();
  await ask("stop");
  await page.getByRole("status").filter({ hasText: /has not answered/ }).waitFor();
  await page.getByRole("row", { name: /before/ }).waitFor();
  await look("without a server");
  // A page whose code is not loaded yet says so inside the frame, and comes by itself.
  await page.getByRole("link", { name: "Calendars", exact: true }).click();
  await page.getByRole("heading", { name: "The server does not answer" }).waitFor();
  await look("a page without a server");
  await api("POST", "/v1/jobs", { name: "meanwhile", command: "true", delay_seconds: 3600 });
  await ask("start");
  await page.getByRole("heading", { level: 1, name: "Calendars" }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "Live" }).waitFor();
  await until(async () => (await page.getByRole("row", { name: /meanwhile/ }).count()) || (await page.getByRole("button", { name: /new/ }).count()), "the new run is announced");
}
