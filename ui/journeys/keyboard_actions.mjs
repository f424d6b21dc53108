/** What people do most, by keys alone: pause and run a job, cancel runs, approve, replay, make a rule, a token and a job. */
export default async function journey({ page, base, api, until }) {
  await api("POST", "/v1/jobs", { name: "nightly", cron: "0 3 * * *", command: "true" });
  for (const name of ["one", "two", "three"]) await api("POST", "/v1/jobs", { name, command: "true", delay_seconds: 3600 });
  const { id: waiting } = await api("POST", "/v1/jobs", { name: "refund", command: "echo refunded", signal: { timeout_seconds: 3600 } });
  const { id: failed } = await api("POST", "/v1/jobs", { name: "fails", command: "exit 7", retries: 0 });
  await until(async () => (await api("GET", `/v1/runs/${failed}`)).state === "failed", "the run fails");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const focused = () => page.evaluate(() => {
    const one = document.activeElement;
    const label = one.labels?.[0]?.textContent ?? "";
    return (one.getAttribute("aria-label") || label || one.textContent || "").trim();
  });
  /** Goes on with Tab until the focus is on what has this name. */
  const tabTo = async (name) => {
    for (let step = 0; step < 120; step += 1) {
      if (name.test(await focused())) return;
      await press("Tab");
    }
    throw new Error(`no Tab leads to ${name}`);
  };
  const dialog = page.getByRole("dialog");
  const goTo = async (path, ready) => {
    await page.goto(`${base}/ui${path}`);
    await ready.first().waitFor();
  };

  await goTo("/jobs/nightly", page.getByRole("heading", { level: 1, name: "nightly" }));
  await tabTo(/^Pause$/);
  await press("Enter");
  await dialog.waitFor();
  await press("Escape");
  await dialog.waitFor({ state: "detached" });
  if (!/^Pause$/.test(await focused())) throw new Error(`closing a dialog leaves the focus at “${await focused()}”`);
  await press("p");
  await dialog.waitFor();
  await page.keyboard.type("holidays");
  await press("Enter");
  await until(async () => (await api("GET", "/v1/jobs/nightly")).paused_at !== null, "the job is paused");
  await dialog.waitFor({ state: "detached" });
  await press("t");
  await until(async () => (await api("GET", "/v1/runs?job=nightly")).items.length === 1, "the job runs by hand");

  await goTo("/runs?q=state:scheduled", page.getByRole("row", { name: /three/ }));
  await press("j", "x");
  await page.getByText("1 row selected").waitFor();
  await press("j", "x");
  await page.getByText("2 rows selected").waitFor();
  await tabTo(/^Cancel$/);
  await press("Enter");
  await dialog.getByRole("button", { name: /^Cancel 2/ }).waitFor();
  await tabTo(/^Cancel 2/);
  await press("Enter");
  await until(async () => (await api("GET", "/v1/runs?state=cancelled")).items.length === 2, "two runs are cancelled");

  await goTo("/approvals", page.getByText("refund"));
  await tabTo(/^Approve/);
  await press("Enter");
  await dialog.waitFor();
  await page.keyboard.type("fine with me");
  await tabTo(/^Approve$/);
  await press("Enter");
  await until(async () => (await api("GET", `/v1/runs/${waiting}`)).state === "succeeded", "the approved run succeeds");

  await goTo("/dead", page.getByRole("row", { name: /exit code 7/ }));
  await press("j", "Enter");
  await page.getByRole("heading", { level: 1, name: /exit code 7/ }).waitFor();
  await tabTo(/^Replay/);
  await press("Enter");
  await dialog.waitFor();
  await tabTo(/^Replay/);
  await press("Enter");
  await until(async () => (await api("GET", "/v1/runs?text=fails")).items.length === 2, "the dead letter is replayed");

  await goTo("/alerts", page.getByRole("heading", { name: "Rules" }));
  await tabTo(/^New rule/);
  await press("Enter");
  await dialog.waitFor();
  await page.keyboard.type("lag");
  await press("Tab");
  await page.keyboard.type("Runs wait");
  await tabTo(/^Longer than/);
  await page.keyboard.type("2m");
  await press("Enter");
  await until(async () => (await api("GET", "/v1/alert-rules")).items.some(({ rule }) => rule.condition.kind === "queue_lag" && rule.condition.above === "2m"), "the rule is made");

  await goTo("/settings/tokens", page.getByRole("button", { name: "New token" }));
  await tabTo(/^New token/);
  await press("Enter");
  await dialog.waitFor();
  await page.keyboard.type("by-keys");
  await press("Enter");
  await page.getByText("It is not shown again").waitFor();
  await tabTo(/^I have copied it/);
  await press("Enter");
  await dialog.waitFor({ state: "detached" });
  if (!(await api("GET", "/v1/tokens")).items.some(({ name }) => name === "by-keys")) throw new Error("the token is not there");
}
