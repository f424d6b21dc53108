// A helper of journeys through all pages: something of everything, and where it is shown.

export async function fill(api, until) {
  const { id: failed } = await api("POST", "/v1/jobs", { name: "fails", command: "echo no; exit 3", retries: 0, tags: ["shop"] });
  await api("POST", "/v1/jobs", { name: "every-second", every: "1s", command: "echo tick" });
  await api("PUT", "/v1/calendars/holidays", { timezone: "Europe/Berlin", dates: ["2026-12-25"], weekdays: ["SUN"] });
  await api("POST", "/v1/queues/later/pause", { reason: "not today" });
  await api("PUT", "/v1/alert-channels/ops", { kind: "email", host: "mail.invalid", from: "foliot@example.org", to: ["ops@example.org"] });
  await api("PUT", "/v1/alert-rules/failures", { condition: { kind: "run_failed" }, severity: "critical" });
  await api("POST", "/v1/alert-silences", { rule: "failures", reason: "not today", until: "2099-01-01T00:00:00Z" });
  const workflow = await api("POST", "/v1/workflows", { name: "release", steps: [{ key: "build", command: "echo built" }, { key: "publish", task: "wait", after: ["build"], signal: {} }] });
  await api("POST", "/v1/tokens", { name: "ci", role: "submitter" });
  await until(async () => (await api("GET", `/v1/runs/${failed}`)).state === "failed", "the run fails");
  await until(async () => (await api("GET", "/v1/approvals")).items.length > 0, "the approval is asked for");
  const groups = (await api("GET", "/v1/dead-letters")).items;
  const [worker] = (await api("GET", "/v1/workers")).items;
  return {
    values: { reference: "every-second", id: failed, name: "default", group: groups[0]?.fingerprint ?? "none" },
    special: { "/workflows": { id: workflow.id, name: "release" }, "/workers": { id: worker.id }, "/tasks": { name: "shell" }, "/calendars": { name: "holidays" } },
  };
}

/** The paths of all pages, with names and ids of things that are there. */
export async function pathsOf(page, { values, special }) {
  const paths = JSON.parse(await page.evaluate(() => document.documentElement.dataset.routes ?? "[]"));
  if (paths.length < 10) throw new Error(`the page knows ${paths.length} routes`);
  return paths.map((path) => {
    const own = special[`/${path.split("/")[1]}`] ?? {};
    return path.replaceAll(/\$(\w+)/g, (_, name) => encodeURIComponent(own[name] ?? values[name] ?? "none"));
  });
}

/** Opens a page and waits until its first answers are there. */
export async function open(page, base, path) {
  await page.goto(`${base}/ui${path}`);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.waitForLoadState("load");
  await page.locator("main [class*=skeleton]").first().waitFor({ state: "detached" });
}
