/** A workflow with a map is watched while it runs, and cancelled with its teardown; a viewer could not. */
export default async function journey({ page, base, api, until, look }) {
  const { id } = await api("POST", "/v1/workflows", {
    name: "resize",
    steps: [
      { key: "each", task: "simulate", map: { range: { stop: 3 }, item_name: "execution_time_ms" }, retries: 0 },
      { key: "long", command: "sleep 600", retries: 0 },
      { key: "after", command: "echo after", after: ["long"] },
      { key: "tidy", command: "echo tidy", teardown: true },
    ],
  });
  await page.goto(`${base}/ui/workflows/${id}`);
  const outline = page.getByRole("list", { name: "Steps" });
  await outline.getByRole("button", { name: /each.*3 of 3/ }).waitFor();
  await outline.getByRole("button", { name: /each/ }).click();
  await page.getByRole("link", { name: "Open its items" }).click();
  await page.getByRole("row", { name: /each/ }).nth(2).waitFor();
  if ((await page.getByRole("row", { name: /each/ }).count()) !== 3) throw new Error("the items of the map are not listed");
  await page.goBack();
  await page.getByRole("button", { name: "Cancel …" }).click();
  await page.getByRole("dialog").getByRole("checkbox", { name: /teardown/ }).waitFor();
  await page.getByRole("textbox", { name: /Reason/ }).fill("wrong pictures");
  await look("cancelling");
  await page.getByRole("button", { name: "Cancel it" }).click();
  await page.getByText("It was cancelled.").waitFor();
  const states = Object.fromEntries((await api("GET", `/v1/workflows/${id}`)).steps.map((step) => [step.key, step.state]));
  if (states.tidy !== "succeeded" || states.long !== "cancelled") throw new Error(`not as asked: ${JSON.stringify(states)}`);
}
