/** A token of one namespace neither sees nor changes another, by no link and no URL. */
export const needsToken = true;

export default async function journey({ page, base, api, look }) {
  const { id } = await api("POST", "/v1/jobs", { name: "secret-plan", command: "true", delay_seconds: 3600 });
  await api("POST", "/v1/jobs", { name: "secret-nightly", cron: "0 3 * * *", command: "true" });
  await api("PUT", "/v1/alert-rules/secret-rule", { condition: { kind: "run_failed" } });
  const { token } = await api("POST", "/v1/tokens", { name: "tom", role: "admin", namespace: "team" });
  await page.goto(`${base}/ui/runs/${id}`);
  await page.getByLabel(/Token/).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "There is no run here" }).waitFor();
  const main = page.getByRole("main");
  for (const path of ["/", "/runs", "/jobs", "/jobs/secret-nightly", "/agenda", "/alerts", `/why/${id}`, "/runs?q=secret", "/settings/audit", "/runs?ns=default", `/runs/${id}?ns=default`, "/alerts?ns=default"]) {
    await page.goto(`${base}/ui${path}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.locator("main [class*=skeleton]").first().waitFor({ state: "detached" });
    // The search for it stays in its field.
    if (/secret-(plan|nightly|rule)/.test((await main.innerText()).replaceAll(path.split("/").at(-1), ""))) throw new Error(`${path} shows a foreign namespace`);
  }
  await page.goto(`${base}/ui/runs?ns=default`);
  await page.getByText("You may not see this").first().waitFor();
  await look("a foreign namespace");
  const asked = [["POST", `/v1/runs/${id}/cancel`], ["GET", `/v1/runs/${id}`], ["GET", `/v1/runs/${id}/logs`], ["DELETE", "/v1/jobs/secret-nightly"], ["POST", "/v1/jobs/secret-nightly/trigger"], ["DELETE", "/v1/alert-rules/secret-rule"]];
  for (const namespace of ["", "default"])
    for (const [method, path] of asked) {
      const status = await page.evaluate(async ([verb, target, name]) => (await fetch(target, { method: verb, headers: { "Foliot-CSRF": "1", "Content-Type": "application/json", ...(name ? { "Foliot-Namespace": name } : {}) } })).status, [method, path, namespace]);
      if (![403, 404].includes(status)) throw new Error(`${method} ${path} in ${namespace || "its own namespace"} is answered with ${status}`);
    }
  if ((await api("GET", `/v1/runs/${id}`)).state !== "scheduled") throw new Error("the run was cancelled");
}
