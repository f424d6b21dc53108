/** A viewer sees every page with all its numbers, and no button that changes something; the server refuses as well. */
import { fill, open, pathsOf } from "./filled.mjs";
export const needsToken = true;

const CHANGES = /^(Replay|Dismiss|Restore|Write|Edit|Pause|Resume|Change|Limits|Run|Close circuit|Stop|Disable|Enable|New|Create|Delete|Cancel|Approve|Refuse|Silence|Acknowledge|Test|Drain|Save|Send|Trigger|Redrive|Import|End|Revoke|Turn|Select)\b/;
// They ask the server nothing, or for a view of the viewer's own.
const HARMLESS = /^(Saved views|Newest|Close all)/;

export default async function journey({ page, base, api, until }) {
  const filled = await fill(api, until);
  const { group, id } = filled.values;
  await api("PUT", `/v1/dead-letters/groups/${group}/note`, { note: "Known." });
  await api("POST", "/v1/queues/default/pause", { reason: "holidays" });
  const viewer = await api("POST", "/v1/tokens", { name: "watcher", role: "viewer" });
  await page.goto(`${base}/ui/dead`);
  await page.getByLabel(/Token/).fill(viewer.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("row", { name: /exit code 3/ }).waitFor();
  const main = page.getByRole("main");
  const problems = [];
  for (const path of await pathsOf(page, filled)) {
    await open(page, base, path);
    const named = (found) => found.map((one) => (one.getAttribute("aria-label") || one.textContent || "").trim());
    const buttons = await main.getByRole("button").evaluateAll(named);
    const links = await main.getByRole("link").evaluateAll(named);
    const changing = [...buttons, ...links.filter((name) => /^(New|Edit|Run again)/.test(name))].filter((name) => CHANGES.test(name) && !HARMLESS.test(name));
    if (changing.length > 0) problems.push(`${path}: a viewer sees ${changing.join(", ")}`);
    // Filters are for everybody; boxes of rows are not.
    if (await main.getByRole("row").getByRole("checkbox").count()) problems.push(`${path}: a viewer may select rows`);
    if ((await page.title()).startsWith("undefined")) problems.push(`${path} has no title`);
  }
  for (const [path, seen] of Object.entries({ [`/dead/${group}`]: "Known.", "/queues/default": "holidays", "/tasks/shell": "sandbox", "/alerts": "failures", "/pauses": "holidays", "/calendars": "holidays" })) {
    await page.goto(`${base}/ui${path}`);
    await main.getByText(seen).first().waitFor();
  }
  const asked = [
    `POST /v1/dead-letters/groups/${group}/dismiss`, "POST /v1/dead-letters/replay", "POST /v1/queues/mail/resume", "POST /v1/tasks/shell/pause", "POST /v1/circuits/shell/close",
    "POST /v1/jobs", `POST /v1/runs/${id}/rerun`, "POST /v1/runs/cancel", "DELETE /v1/jobs/every-second", "POST /v1/jobs/every-second/trigger", "PUT /v1/calendars/holidays", "DELETE /v1/calendars/holidays",
    "PUT /v1/alert-rules/failures", "DELETE /v1/alert-rules/failures", "PUT /v1/alert-channels/ops", "POST /v1/alert-channels/ops/test", "POST /v1/alert-silences", "POST /v1/pause", "POST /v1/tokens", "GET /v1/tokens", "GET /v1/settings",
  ];
  for (const one of asked) {
    const [method, path] = one.split(" ");
    const status = await page.evaluate(async ([verb, target]) => (await fetch(target, { method: verb, headers: { "Foliot-CSRF": "1", "Content-Type": "application/json" }, ...(verb === "GET" ? {} : { body: "{}" }) })).status, [method, path]);
    if (status !== 403) problems.push(`${one} is answered with ${status}`);
  }
  if (problems.length) throw new Error(problems.join("\n"));
}
