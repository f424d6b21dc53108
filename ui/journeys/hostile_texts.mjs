/** Names, tags, payloads, errors and reasons full of markup, controls and bidirectional marks are shown as text. */
export default async function journey({ page, base, api, until, look }) {
  const script = `"><img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>`;
  const bidi = "user\u202etxt.exe\u2066 \u0007\u001b[31mred";
  const { id } = await api("POST", "/v1/jobs", { name: script.slice(0, 190), command: `printf '%s' "$0" >&2; echo '${"x".repeat(20_000)}'; exit 1`, retries: 0, tags: ["<b>tag</b>"], metadata: { [script]: bidi } });
  await api("POST", "/v1/jobs", { task: "simulate", name: bidi.replaceAll(/[\u0007\u001b]/g, "").slice(0, 60), payload: { [script]: [script, bidi, "y".repeat(50_000)] } }).catch(() => undefined);
  await api("POST", "/v1/queues/mail/pause", { reason: script });
  await api("POST", "/v1/pause", { reason: bidi.replaceAll(/[\u0007\u001b]/g, "") });
  await until(async () => ["failed", "ready"].includes((await api("GET", `/v1/runs/${id}`)).state), "the run is there");
  await api("POST", "/v1/resume", {});
  await until(async () => (await api("GET", `/v1/runs/${id}`)).state === "failed", "the run fails");
  await api("PUT", "/v1/views", { page: "runs", name: "<b>view</b>", search: "q=state:failed", is_shared: true });
  const [group] = (await api("GET", "/v1/dead-letters")).items;
  await api("PUT", `/v1/dead-letters/groups/${group.fingerprint}/note`, { note: `${script}\n${bidi.replaceAll(/[\u0007\u001b]/g, "")}${"z".repeat(1_500)}` });
  const paths = [`/dead/${group.fingerprint}`, "/queues/mail", "/tasks", "/tasks/shell", `/tasks/${encodeURIComponent("../<b>")}`, `/queues/${encodeURIComponent(script)}`, `/dead?q=${encodeURIComponent(script)}`, "/", "/runs", `/runs/${id}`, `/runs/${id}/data`, `/runs/${id}/attempts`, "/jobs", "/dead", "/queues", "/pauses", "/settings/audit?action=pause_queue", `/runs?q=${encodeURIComponent(script)}`, `/jobs/${encodeURIComponent(script)}`, `/why/${encodeURIComponent(script)}`, `/settings/%3Cscript%3E`];
  for (const path of paths) {
    await page.goto(`${base}/ui${path}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForLoadState("load");
    if ((await page.title()).startsWith("hacked")) throw new Error(`${path}: a text ran as a script`);
    const planted = await page.locator("main img[src='x'], main script").count();
    if (planted) throw new Error(`${path}: a text became ${planted} elements`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    if (wide) throw new Error(`${path}: a long text makes the page wider than the window`);
  }
  await page.goto(`${base}/ui/runs`);
  await page.getByRole("row", { name: /onerror/ }).first().waitFor();
  await look("hostile names");

  // Ten megabytes in one line, then what terminals would obey.
  const escapes = String.raw`printf '\033]0;title\007\033[2J\033[31mred\033[0m \342\200\256dlrow <script>document.title="hacked"</script>\n'`;
  const { id: loud } = await api("POST", "/v1/jobs", { name: "loud", command: `head -c 10000000 /dev/zero | tr '\\0' x; echo; ${escapes}; exit 1`, retries: 0 });
  await until(async () => (await api("GET", `/v1/runs/${loud}`)).state === "failed", "the loud run fails");
  await page.goto(`${base}/ui/runs/${loud}`);
  const log = page.getByRole("log");
  await log.getByText('<script>document.title="hacked"</script>').waitFor();
  const shown = await log.evaluate((one) => ({ length: one.textContent.length, lines: one.querySelectorAll("[data-line]").length, scripts: one.querySelectorAll("script").length, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth }));
  if (shown.length > 2_000_000 || shown.lines > 1500) throw new Error(`the page holds ${shown.length} characters in ${shown.lines} lines`);
  if (shown.scripts || (await page.title()).startsWith("hacked")) throw new Error("the output ran as a script");
  if (shown.wide > 0) throw new Error(`a long line makes the page ${shown.wide} pixels wider than the window`);
  if (/[\u0007\u001b]/.test(await log.innerText())) throw new Error("the output reached the page with its control characters");
  await page.getByRole("searchbox", { name: "Search in the log" }).fill("dlrow");
  await page.getByText("1 of 1").waitFor();
}
