/** A rule opens an alert for a failed job; somebody takes care of it, silences the rule, and tests the channel. */
export default async function journey({ page, base, api, until, look }) {
  await page.goto(`${base}/ui/alerts`);
  await page.getByRole("heading", { level: 2, name: "No alert is open" }).waitFor();
  await page.getByText("There are no channels yet.").waitFor();
  await look("no alerts, rules and channels");
  // Nobody answers there, so that the test of the channel fails at once.
  await api("PUT", "/v1/alert-channels/ops", { kind: "email", host: "mail.invalid", from: "foliot@example.org", to: ["ops@example.org"], title: "<b>{{ title }}</b>" });
  await api("PUT", "/v1/alert-rules/failures", { condition: { kind: "run_failed" }, severity: "critical", channels: ["ops"], scope: { tag: "shop" } });
  await api("POST", "/v1/jobs", { name: "<i>sales</i>", command: "echo '<b>no</b>'; exit 3", retries: 0, tags: ["shop"] });
  await until(async () => (await api("GET", "/v1/alerts")).items.some((one) => one.state === "open"), "an alert opens");
  const row = page.getByRole("list", { name: "Alerts", exact: true }).getByRole("listitem");
  await row.getByText("Critical").waitFor();
  await page.getByRole("list", { name: "Rules" }).getByText("A run failed for good · tag shop").waitFor();
  await look("an open alert");
  await row.getByRole("button", { name: /^Acknowledge/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Note").fill("<b>on it</b>");
  await look("the dialog to acknowledge");
  await page.keyboard.press("Enter");
  await row.getByText("local takes care of it: <b>on it</b>").waitFor();
  if (await row.getByRole("button", { name: /^Acknowledge/ }).count()) throw new Error("an acknowledged alert can be acknowledged again");
  await row.getByRole("button", { name: /^Silence/ }).click();
  await dialog.getByLabel("Reason").fill("the shop is closed");
  await dialog.getByLabel("Until").selectOption("8h");
  await dialog.getByRole("button", { name: "Silence", exact: true }).click();
  const silences = page.getByRole("list", { name: "Silences" });
  await silences.getByText("the shop is closed").waitFor();
  await look("an acknowledged alert and a silence");
  await silences.getByRole("button", { name: "End the silence of failures" }).click();
  await silences.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Test the channel ops" }).click();
  await page.getByText("ops: not delivered.").waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await look("alerts on a phone");
}
