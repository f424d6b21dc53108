/** Where tokens are needed: sign in with a wrong and a right one, a viewer without buttons, revoked while the page is open. */
export const needsToken = true;

export default async function journey({ page, base, open, api, callTo, until, look }) {
  await api("POST", "/v1/jobs", { name: "nightly", cron: "0 3 * * *", command: "true" });
  const { id } = await api("POST", "/v1/jobs", { name: "later", command: "true", delay_seconds: 3600 });
  const viewer = await api("POST", "/v1/tokens", { name: "watcher", role: "viewer" });
  const admin = await api("POST", "/v1/tokens", { name: "ann", role: "admin", namespace: "*" });
  await page.goto(`${base}/ui/jobs/nightly`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await look("sign in");
  const field = page.getByLabel(/Token/);
  await field.fill("foliot_not-a-token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("[aria-invalid=true]").waitFor();
  await look("a wrong token");
  if ((await field.inputValue()) !== "foliot_not-a-token") throw new Error("what was typed is gone");
  await field.fill(viewer.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  // The link still leads where it led.
  await page.getByRole("heading", { level: 1, name: "nightly" }).waitFor();
  for (const name of [/^Run now/, /^Pause/, /^Delete/, /^Edit/])
    if (await page.getByRole("button", { name }).count()) throw new Error(`a viewer sees the button ${name}`);
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie);
  if (kept.includes(viewer.token)) throw new Error("the token is kept in the browser");
  // Nor does it work by URL, from the page itself.
  const refused = await page.evaluate(async (run) => (await fetch(`/v1/runs/${run}/cancel`, { method: "POST", headers: { "Foliot-CSRF": "1" } })).status, id);
  if (refused !== 403) throw new Error(`a viewer's cancel is answered with ${refused}`);
  const forged = await page.evaluate(async (run) => (await fetch(`/v1/runs/${run}/cancel`, { method: "POST" })).status, id);
  if (forged !== 403) throw new Error(`a change without the header is answered with ${forged}`);
  await page.goto(`${base}/ui/settings/tokens`);
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await page.getByText("It needs the role admin.").waitFor();
  await page.goto(`${base}/ui/runs`);
  await page.getByRole("row", { name: /later/ }).waitFor();
  if (await page.getByRole("checkbox").count()) throw new Error("a viewer may select runs");
  await api("DELETE", `/v1/tokens/${viewer.id}`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByLabel(/Token/).fill(admin.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("row", { name: /later/ }).waitFor();
  await page.goto(`${base}/ui/settings/tokens`);
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("deploy");
  await look("new token");
  await page.getByRole("button", { name: "Make the token" }).click();
  await page.getByText("It is not shown again").waitFor();
  const made = await page.getByRole("dialog").locator("pre").innerText();
  await page.getByRole("button", { name: "I have copied it" }).click();
  const works = await callTo(base, made.trim())("GET", "/v1/session");
  if (works.name !== "deploy") throw new Error("the new token does not work");
  await page.getByRole("button", { name: "Revoke deploy" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("deploy is revoked.").waitFor();
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await until(async () => (await (await fetch(`${open}/v1/audit?actor=ann`)).json()).items.some((entry) => entry.action === "delete_session"), "the sign-out is recorded");
}
