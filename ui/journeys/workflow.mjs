/** A workflow fails: its graph, its timeline and its steps say where; the failed part runs again after a preview. */
export default async function journey({ page, base, api, until, look }) {
  const steps = [
    { key: "export", command: "echo exported", retries: 0 },
    { key: "check", command: "test -e /tmp/there-is-no-such-file-of-foliot", after: ["export"], retries: 0 },
    { key: "send", command: "echo sent", after: ["check"] },
    { key: "alert", command: "echo alert", after: ["check"], rule: "one_failed" },
    { key: "tidy", command: "echo tidy", teardown: true },
  ];
  const name = `books <img src=x onerror=alert(1)>`;
  const { id } = await api("POST", "/v1/workflows", { name, steps });
  await until(async () => (await api("GET", `/v1/workflows/${id}`)).state === "failed", "the workflow fails");
  await page.goto(`${base}/ui/workflows`);
  await page.getByRole("link", { name, exact: true }).waitFor();
  await page.getByRole("img", { name: /Steps: .*1 failed/ }).waitFor();
  await look("workflows");
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByText("A step has failed: check.").waitFor();
  // The picture is there once the worker has placed the steps.
  await page.getByRole("img", { name: /Graph of books/ }).waitFor();
  const outline = page.getByRole("list", { name: "Steps" });
  await outline.getByRole("button", { name: /export/ }).focus();
  await page.keyboard.press("ArrowDown");
  const panel = page.getByRole("complementary");
  await panel.getByRole("heading", { name: "check" }).waitFor();
  await until(() => new URL(page.url()).searchParams.get("step") === "check", "the step is in the URL");
  await look("graph with a step");
  await panel.getByRole("button", { name: "alert" }).click();
  await panel.getByText("one_failed").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("searchbox", { name: "Find a step" }).fill("sen");
  await page.getByText("1 step", { exact: true }).waitFor();
  await page.getByRole("button", { name: /Critical path/ }).click();
  await page.getByRole("link", { name: "Timeline", exact: true }).click();
  await page.getByRole("list", { name: "Steps over time" }).getByRole("link", { name: "check" }).waitFor();
  await look("timeline");
  await page.getByRole("link", { name: /^Steps/ }).click();
  await page.getByRole("row", { name: /check/ }).getByText("exit code 1").waitFor();
  await look("steps");

  await page.keyboard.press("t");
  const dialog = page.getByRole("dialog", { name: "Run the failed part again?" });
  await dialog.getByText("4 steps will run again").waitFor();
  await dialog.getByText("1 step will keep its result").waitFor();
  await look("preview of a redrive");
  const { run_id: before } = await api("GET", `/v1/workflows/${id}`);
  await dialog.getByRole("button", { name: "Run 4 steps again" }).click();
  await page.getByText("It runs again.").waitFor();
  const again = await until(async () => {
    const now = await api("GET", `/v1/workflows/${id}`);
    return now.run_id !== before && now.state === "failed" ? now : null;
  }, "it has run again");
  if (again.steps.find((step) => step.key === "export").attempt !== 1) throw new Error("a step that keeps its result has run again");

  await api("POST", "/v1/workflows", { name, steps: [...steps.slice(0, 1), { key: "new", command: "echo new" }] });
  await page.goto(`${base}/ui/workflows/by-name/${encodeURIComponent(name)}`);
  await page.getByRole("application", { name: /6 steps in 2 runs/ }).focus();
  for (const key of ["ArrowRight", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  await page.getByText(/This run did not have the step|Succeeded|Failed/).first().waitFor();
  await page.keyboard.press("Escape");
  await look("grid");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: /books/ }).waitFor();
}
