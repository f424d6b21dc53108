/** Every page of the app, with data and in both themes, on a desktop and on a phone: nothing keeps people out. */
export default async function journey({ page, base, api, until, look }) {
  const { id: failed } = await api("POST", "/v1/jobs", { name: "fails", command: "echo no; exit 3", retries: 0, tags: ["shop"] });
  await api("POST", "/v1/jobs", { name: "every-second", every: "1s", command: "echo tick" });
  await api("PUT", "/v1/calendars/holidays", { timezone: "Europe/Berlin", dates: ["2026-12-25"], weekdays: ["SUN"] });
  await api("POST", "/v1/queues/later/pause", { reason: "not today" });
  const workflow = await api("POST", "/v1/workflows", { name: "release", steps: [{ key: "build", command: "echo built" }, { key: "publish", task: "wait", after: ["build"], signal: {} }] });
  await api("POST", "/v1/tokens", { name: "ci", role: "submitter" });
  await until(async () => (await api("GET", `/v1/runs/${failed}`)).state === "failed", "the run fails");
  const groups = (await api("GET", "/v1/dead-letters")).items;
  const [worker] = (await api("GET", "/v1/workers")).items;
  const values = { reference: "every-second", id: failed, name: "default", group: groups[0]?.fingerprint ?? groups[0]?.id ?? "none" };
  const special = { "/workflows": { id: workflow.id, name: "release" }, "/workers": { id: worker.id }, "/tasks": { name: "shell" }, "/calendars": { name: "holidays" } };
  await page.goto(`${base}/ui/runs`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  const paths = JSON.parse(await page.evaluate(() => document.documentElement.dataset.routes ?? "[]"));
  if (paths.length < 10) throw new Error(`the page knows ${paths.length} routes`);
  for (const isPhone of [false, true]) {
    await page.setViewportSize(isPhone ? { width: 390, height: 844 } : { width: 1440, height: 900 });
    for (const path of paths) {
      const own = special[`/${path.split("/")[1]}`] ?? {};
      const filled = path.replaceAll(/\$(\w+)/g, (_, name) => encodeURIComponent(own[name] ?? values[name] ?? "none"));
      await page.goto(`${base}/ui${filled}`);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      await page.waitForLoadState("load");
      // Skeletons are gone when the first answers are there.
      await page.locator("main [class*=skeleton]").first().waitFor({ state: "detached" });
      if (isPhone) {
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) throw new Error(`${filled} is ${wide} pixels too wide for a phone`);
      } else await look(filled);
    }
  }
}
