/** Rules and channels are made by their forms, mostly by keys; a failed job opens an alert; somebody takes care of it. */
export default async function journey({ page, base, api, until, look }) {
  await page.goto(`${base}/ui/alerts`);
  await page.getByRole("heading", { level: 2, name: "No alert is open" }).waitFor();
  await page.getByText("Without a channel, alerts are only listed here.").waitFor();
  await look("no alerts, rules and channels");
  const dialog = page.getByRole("dialog");
  const rules = page.getByRole("list", { name: "Rules" });
  const channels = page.getByRole("list", { name: "Channels" });

  // Nobody answers there, so that the test of the channel fails at once.
  await page.getByRole("button", { name: "New channel" }).press("Enter");
  await dialog.waitFor();
  await page.keyboard.type("ops/team");
  await dialog.getByText(/Use letters, digits/).waitFor();
  await dialog.getByLabel("Name", { exact: true }).fill("ops");
  await dialog.getByLabel("Mail server").fill("127.0.0.1");
  await dialog.getByLabel("From", { exact: true }).fill("foliot@example.org");
  await page.keyboard.press("Enter");
  await dialog.getByText("This is needed.").waitFor();
  await dialog.getByLabel("To", { exact: true }).fill("ops@example.org, not an address");
  await page.keyboard.press("Enter");
  await dialog.locator("[aria-invalid=true]").waitFor();
  await look("a channel with a wrong address");
  await dialog.getByLabel("To", { exact: true }).fill("ops@example.org, pager@example.org");
  await page.keyboard.press("Enter");
  await dialog.getByText(/is not public/).waitFor();
  if ((await dialog.getByLabel("To", { exact: true }).inputValue()) !== "ops@example.org, pager@example.org") throw new Error("what was typed is gone");
  await dialog.getByLabel("Mail server").fill("mail.invalid");
  await dialog.getByText("Own texts").press("Enter");
  await dialog.getByLabel("Title").fill("<b>{{ title }}</b>");
  await dialog.getByRole("button", { name: "Create" }).press("Enter");
  await channels.getByText("ops@example.org, pager@example.org").waitFor();
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("ops: not delivered.").waitFor();

  await page.getByRole("button", { name: "New rule" }).press("Enter");
  await dialog.waitFor();
  await page.keyboard.type("failures");
  await dialog.getByLabel("Alert when").selectOption("not_started");
  await page.keyboard.press("Enter");
  await dialog.getByText(/needs the name of a recurring job/).waitFor();
  await dialog.getByLabel("Alert when").selectOption("run_failed");
  await dialog.getByLabel("Tag").fill("shop");
  await dialog.getByLabel("Severity").selectOption({ label: "Critical" });
  await dialog.getByRole("checkbox", { name: "ops" }).press("Space");
  await dialog.getByLabel("After it has held for").fill("soon");
  await page.keyboard.press("Enter");
  await dialog.getByText("It does not have the expected form.").waitFor();
  await look("a rule with a wrong time");
  await dialog.getByLabel("After it has held for").fill("");
  await dialog.getByText("From a terminal").click();
  await dialog.getByText(/foliot alerts rules put failures/).waitFor();
  // A press beside the dialog must not throw away what was typed, and neither must a server that is away.
  await page.mouse.click(5, 400);
  await page.route("**/v1/alert-rules/failures", (route) => route.abort());
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByRole("alert").waitFor();
  if ((await dialog.getByLabel("Tag").inputValue()) !== "shop") throw new Error("what was typed is gone");
  await page.unroute("**/v1/alert-rules/failures");
  await dialog.getByRole("button", { name: "Create" }).click();
  await rules.getByText("A run failed for good · tag shop").waitFor();
  await rules.getByText("Critical → ops").waitFor();
  await page.getByRole("button", { name: "Change failures" }).click();
  await dialog.getByText("Repetition and note").click();
  await dialog.getByLabel("Tell again every").fill("");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const { rule } = await api("GET", "/v1/alert-rules/failures");
  if (rule.repeat !== null || rule.severity !== "critical" || rule.scope.tag !== "shop") throw new Error(`the change lost something: ${JSON.stringify(rule)}`);

  // A channel that somebody else changes meanwhile is not overwritten unnoticed.
  await page.getByRole("button", { name: "Change ops" }).click();
  await dialog.getByLabel("Mail server").fill("mail2.invalid");
  const { channel } = await api("GET", "/v1/alert-channels/ops");
  await api("PUT", "/v1/alert-channels/ops", { ...channel, from: "other@example.org" });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("Somebody else has changed it meanwhile.").waitFor();
  if ((await dialog.getByLabel("Mail server").inputValue()) !== "mail2.invalid") throw new Error("what was typed is gone");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  if ((await api("GET", "/v1/alert-channels/ops")).channel.host !== "mail2.invalid") throw new Error("the second attempt to save was refused");

  await api("POST", "/v1/jobs", { name: "<i>sales</i>", command: "echo '<b>no</b>'; exit 3", retries: 0, tags: ["shop"] });
  await until(async () => (await api("GET", "/v1/alerts")).items.some((one) => one.state === "open"), "an alert opens");
  const row = page.getByRole("list", { name: "Alerts", exact: true }).getByRole("listitem");
  await row.getByText("Critical").waitFor();
  if (!(await row.getByRole("link").first().getAttribute("href")).includes("/ui/runs/")) throw new Error("no link leads from the alert to its run");
  await look("an open alert");
  await row.getByRole("button", { name: /^Acknowledge/ }).click();
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
  await page.getByRole("button", { name: "More actions for failures", exact: true }).click();
  await page.getByRole("menuitem", { name: "Turn off" }).click();
  await row.waitFor({ state: "detached" });
  await page.setViewportSize({ width: 390, height: 844 });
  await look("alerts on a phone");
  await page.getByRole("button", { name: "New rule" }).click();
  await look("a new rule on a phone");
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: "More actions for failures", exact: true }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByText("failures is deleted.").locator("..").getByRole("button", { name: "Undo" }).click();
  await page.getByText("failures stays.").waitFor();
  await page.getByRole("button", { name: "More actions for failures", exact: true }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  // A toast under the pointer stays, and with it what was deleted.
  await page.mouse.move(5, 300);
  await rules.waitFor({ state: "detached" });
}
