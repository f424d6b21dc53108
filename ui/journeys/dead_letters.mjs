/** Failures of one kind: a note, a replay whose first run fails and stops it, one with a repaired payload, a dismissal. */
export default async function journey({ page, base, api, until, look }) {
  const hostile = `<img src=x onerror="document.title='hacked'">`;
  await page.goto(`${base}/ui/dead`);
  await page.getByRole("heading", { level: 2, name: "No run has failed for good" }).waitFor();
  await look("nothing has failed");
  const ids = [];
  for (let number = 0; number < 4; number += 1) ids.push((await api("POST", "/v1/jobs", { name: hostile, command: "echo broken; exit 7", retries: 0 })).id);
  await until(async () => (await api("GET", "/v1/dead-letters")).items[0]?.count === 4, "four runs have failed");
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  const row = page.getByRole("row", { name: /exit code 7/ });
  await row.getByText("shell in default").waitFor();
  await row.getByText("4", { exact: true }).waitFor();
  await look("groups");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: /exit code 7/ }).waitFor();
  await page.getByText("4 runs failed like this in the last seven days.").waitFor();
  await page.getByRole("button", { name: "Write a note" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Note").fill("<b>The feed</b> is broken.");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByText("<b>The feed</b> is broken.").waitFor();
  await page.getByRole("table", { name: "Failures" }).getByRole("row", { name: /onerror/ }).first().waitFor();
  await look("a group");

  // One first: it fails, so the others stay.
  await page.keyboard.press("t");
  await dialog.getByRole("button", { name: "Replay one, then 3" }).waitFor();
  await dialog.getByLabel("Runs per second").fill("none");
  await dialog.getByText("Write a number above 0").first().waitFor();
  await dialog.getByLabel("Runs per second").fill("100");
  await dialog.getByRole("checkbox", { name: /Another payload/ }).check();
  await look("replay");
  await dialog.getByRole("checkbox", { name: /Another payload/ }).uncheck();
  await dialog.getByRole("button", { name: "Replay one, then 3" }).click();
  const replays = page.getByRole("list", { name: "Replays" });
  await replays.getByText("It stopped: its first run failed.").waitFor();
  await replays.getByText("3 runs stay here").waitFor();
  await look("a stopped replay");

  // Only the selected ones, with a payload that works.
  const table = page.getByRole("table", { name: "Failures" });
  await page.getByRole("button", { name: "All", exact: true }).click();
  await table.getByText("Not replayed").first().waitFor();
  await page.getByRole("button", { name: "Open", exact: true }).click();
  await until(async () => (await table.getByRole("checkbox", { name: /onerror/ }).count()) >= 3, "the open ones are listed");
  const group = (await api("GET", "/v1/dead-letters")).items[0];
  if (group.count !== 4) throw new Error(`${group.count} failures are open, and not the three old ones and the one of the replay`);
  await table.getByRole("checkbox", { name: "Select all" }).check();
  await page.getByRole("region", { name: /selected/ }).getByRole("button", { name: "Replay" }).click();
  await dialog.getByRole("checkbox", { name: /Another payload/ }).check();
  await dialog.getByLabel("Payload", { exact: true }).fill("[1]");
  await dialog.getByText("This is not a JSON object.").first().waitFor();
  await dialog.getByLabel("Payload", { exact: true }).fill('{"command": "echo repaired"}');
  await dialog.getByRole("button", { name: /^Replay one, then/ }).click();
  await replays.getByText("with another payload").waitFor();
  await replays.getByText("Done").waitFor();
  await until(async () => (await api("GET", "/v1/runs?state=succeeded")).items.length >= 3, "the others have followed");

  // What fails again is dismissed, comes back by Undo, and leaves the list.
  await api("POST", "/v1/jobs", { command: "exit 7", retries: 0 });
  const dismiss = page.getByRole("main").getByRole("button", { name: "Dismiss", exact: true });
  await until(async () => (await dismiss.getAttribute("aria-disabled")) === null, "a new failure is shown");
  await dismiss.click();
  await page.getByText("The group is dismissed.").locator("..").getByRole("button", { name: "Undo" }).click();
  await page.getByText("The group is back on the list.").waitFor();
  await dismiss.click();
  await page.getByRole("button", { name: "Restore" }).waitFor();
  await page.getByRole("navigation", { name: "Dead letters" }).getByRole("link").click();
  await page.getByRole("heading", { level: 2, name: "No run has failed for good" }).waitFor();
  await page.getByRole("checkbox", { name: "Dismissed too" }).check();
  await page.getByRole("row", { name: /exit code 7/ }).getByText("The feed").waitFor();
}
