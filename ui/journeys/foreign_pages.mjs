/** A page of somebody else can change nothing, read nothing and embed nothing, with a session or without the need of one. */
import { createServer, request } from "node:http";
export const needsToken = true;

export default async function journey({ page, context, base, open, api, until }) {
  const { id } = await api("POST", "/v1/jobs", { name: "target", command: "true", delay_seconds: 3600 });
  const { token } = await api("POST", "/v1/tokens", { name: "ann", role: "admin" });
  await page.goto(`${base}/ui/runs`);
  await page.getByLabel(/Token/).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("row", { name: /target/ }).waitFor();

  const elsewhere = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>elsewhere</title><body>"));
  await new Promise((listening) => elsewhere.listen(0, listening));
  const { port } = elsewhere.address();
  const problems = [];
  // The open API is on 127.0.0.1, the guarded one on localhost: each page is of another site for one of them.
  for (const host of ["localhost", "127.0.0.1"]) {
    const foreign = await context.newPage();
    const sent = new Set();
    foreign.on("request", (asked) => sent.add(`${asked.method()} ${asked.url()}`));
    await foreign.goto(`http://${host}:${port}/`);
    for (const target of [base, open]) {
      const read = await foreign.evaluate(
        async ([root, run]) => {
          const silent = { method: "POST", mode: "no-cors", credentials: "include", body: "{}" };
          await fetch(`${root}/v1/runs/${run}/cancel`, silent).catch(() => undefined);
          await fetch(`${root}/v1/jobs`, { ...silent, body: JSON.stringify({ name: "planted", command: "true" }) }).catch(() => undefined);
          // The header that the UI sends asks for a permission that is never given.
          await fetch(`${root}/v1/pause`, { method: "POST", credentials: "include", headers: { "Foliot-CSRF": "1" } }).catch(() => undefined);
          return fetch(`${root}/v1/runs`, { credentials: "include" }).then((answer) => answer.text(), () => null);
        },
        [target, id],
      );
      if (read !== null) problems.push(`a page at ${host} reads the runs of ${target}`);
      // Browsers hide the answers; below, nothing must have changed.
      for (const path of [`/v1/runs/${id}/cancel`, "/v1/jobs"]) if (!sent.has(`POST ${target}${path}`)) problems.push(`a page at ${host} did not even ask ${target} for ${path}`);
      const form = await foreign.evaluateHandle((root) => {
        const made = document.createElement("form");
        Object.assign(made, { method: "POST", enctype: "text/plain", action: `${root}/v1/resume`, target: "_blank" });
        document.body.append(made);
        return made;
      }, target);
      const [opened] = await Promise.all([context.waitForEvent("page"), form.evaluate((made) => made.submit())]);
      await opened.waitForLoadState();
      const told = await opened.locator("body").innerText();
      if (!/foreign_origin|unauthenticated|cross_site/.test(told)) problems.push(`a form at ${host} is answered by ${target} with ${told.slice(0, 200)}`);
      await opened.close();
      await foreign.evaluate((root) => {
        const frame = document.createElement("iframe");
        frame.src = `${root}/ui/runs`;
        const loaded = new Promise((done) => frame.addEventListener("load", done));
        document.body.append(frame);
        return loaded;
      }, target);
      const frame = foreign.frames().at(-1);
      await until(() => frame.url() !== "" && frame.url() !== "about:blank", "the frame has loaded something");
      if (!frame.url().startsWith("chrome-error:")) problems.push(`a page at ${host} embeds ${frame.url()}`);
    }
    await foreign.close();
  }
  elsewhere.close();

  // A name of somebody else that leads to this machine.
  for (const target of [base, open]) {
    const { hostname, port: own } = new URL(target);
    const status = await new Promise((answered, failed) => request({ host: hostname, port: own, path: "/v1/runs", headers: { Host: "elsewhere.test" } }, (answer) => answered(answer.statusCode)).on("error", failed).end());
    if (status !== 403 && status !== 401) problems.push(`${target} answers to a foreign name with ${status}`);
  }
  if ((await api("GET", `/v1/runs/${id}`)).state !== "scheduled") problems.push("the run was cancelled");
  if ((await api("GET", "/v1/runs?text=planted")).items.length) problems.push("a run was planted");
  if ((await api("GET", "/v1/pauses")).items.length) problems.push("everything is paused");
  if (problems.length) throw new Error(problems.join("\n"));
}
