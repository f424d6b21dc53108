/** A run fails with hostile output; its log shows that as text; it is run again with another payload. */
export default async function journey({ page, base, api, until, look }) {
  const hostile = `<img src=x onerror=alert(1)>"'&`;
  const command = String.raw`printf '\033[31mred\033[0m <script>document.title="hacked"</script>\n'; seq 1 3000; printf 'user\342\200\256txt.exe\n' ; exit 3`;
  const { id } = await api("POST", "/v1/jobs", { name: hostile, command, retries: 0, tags: ["<b>tag</b>"] });
  await until(async () => (await api("GET", `/v1/runs/${id}`)).state === "failed", "the run fails");
  await page.goto(`${base}/ui/runs`);
  await page.getByRole("link", { name: hostile }).click();
  await page.getByRole("heading", { level: 1, name: new RegExp("onerror") }).waitFor();
  await page.getByText("Failed at attempt 1").waitFor();
  const log = page.getByRole("log");
  await log.getByText("3000", { exact: true }).waitFor();
  await page.getByRole("searchbox", { name: "Search in the log" }).fill("<script>");
  await page.getByText("1 of 1").waitFor();
  if ((await page.title()).includes("hacked")) throw new Error("the output ran as a script");
  await log.getByText('<script>document.title="hacked"</script>').waitFor();
  const lines = await log.locator("[data-line]").count();
  if (lines > 1500) throw new Error(`${lines} lines are in the page at once`);
  await look("log");
  await page.getByRole("link", { name: "Attempts" }).click();
  await page.getByText("ExitCode: exit code 3").first().waitFor();
  await look("attempts");
  await page.getByRole("link", { name: "Data", exact: true }).click();
  await look("data");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: /another payload/ }).click();
  const field = page.getByRole("textbox", { name: "Payload" });
  await field.fill("{");
  await page.getByText("This is not a JSON object.").first().waitFor();
  await look("dialog");
  await field.fill('{"command": "echo repaired"}');
  await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
  await page.getByRole("button", { name: "Open it" }).click();
  await page.getByText("repaired").first().waitFor();
  await page.getByText("Succeeded").first().waitFor();
}
