/** A viewer sees failures, queues and tasks with all their numbers, and no button that changes them; the server refuses as well. */
export const needsToken = true;

const CHANGES = /^(Replay|Dismiss|Restore|Write a note|Edit|Pause|Resume|Change|Limits|Run|Close circuit|Stop|Disable|Enable)/;

export default async function journey({ page, base, api, until }) {
  const { id } = await api("POST", "/v1/jobs", { name: "fails", command: "exit 9", retries: 0 });
  await until(async () => (await api("GET", `/v1/runs/${id}`)).state === "failed", "the run fails");
  const [group] = (await api("GET", "/v1/dead-letters")).items;
  await api("PUT", `/v1/dead-letters/groups/${group.fingerprint}/note`, { note: "Known." });
  await api("POST", "/v1/queues/mail/pause", { reason: "holidays" });
  const viewer = await api("POST", "/v1/tokens", { name: "watcher", role: "viewer" });
  await page.goto(`${base}/ui/dead`);
  await page.getByLabel(/Token/).fill(viewer.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("row", { name: /exit code 9/ }).waitFor();
  const main = page.getByRole("main");
  const pages = { [`/dead/${group.fingerprint}`]: "Known.", "/queues/mail": "holidays", "/tasks/shell": "sandbox", "/queues": "mail", "/tasks": "shell" };
  for (const [path, seen] of Object.entries(pages)) {
    await page.goto(`${base}/ui${path}`);
    await main.getByText(seen).first().waitFor();
    const buttons = await main.getByRole("button").evaluateAll((found) => found.map((one) => one.textContent || one.getAttribute("aria-label") || ""));
    const changing = buttons.filter((name) => CHANGES.test(name.trim()));
    if (changing.length > 0) throw new Error(`${path}: a viewer sees ${changing.join(", ")}`);
    if (await main.getByRole("checkbox").count()) throw new Error(`${path}: a viewer may select rows`);
  }
  const asked = [`/v1/dead-letters/groups/${group.fingerprint}/dismiss`, "/v1/dead-letters/replay", "/v1/queues/mail/resume", "/v1/tasks/shell/pause", "/v1/circuits/shell/close"];
  for (const path of asked) {
    const status = await page.evaluate(async (target) => (await fetch(target, { method: "POST", headers: { "Foliot-CSRF": "1", "Content-Type": "application/json" }, body: "{}" })).status, path);
    if (status !== 403) throw new Error(`${path} is answered with ${status}`);
  }
}
