export const isPhone = true;

/** Runs are selected by touch and acted on; nothing is too small for a finger, on any page. */
export default async function journey({ page, base, api, until, look }) {
  for (const name of ["first", "second", "third"]) await api("POST", "/v1/jobs", { name, command: "true", delay_seconds: 3600 });
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(`${base}/ui/runs`);
  const row = (name) => page.getByRole("row", { name: new RegExp(name) });
  await row("first").waitFor();
  if (await page.getByRole("checkbox").count()) throw new Error("the cards show boxes before somebody wants to select");
  await page.getByRole("button", { name: "Select", exact: true }).tap();
  // A touch on the card selects it, also where its link is.
  await page.getByRole("link", { name: "first" }).tap();
  await row("second").tap();
  await page.getByText("2 rows selected").waitFor();
  if (!page.url().includes("/ui/runs")) throw new Error("a touch led to another page");
  // What the bar at the top covers while the list is scrolled is not too small.
  await page.evaluate(() => scrollTo(0, 0));
  await look("selected cards");
  const bar = page.getByRole("region", { name: "2 rows selected" });
  const box = await bar.boundingBox();
  if (box.x < 0 || box.x + box.width > 360) throw new Error(`the bar of actions is cut off: ${JSON.stringify(box)}`);
  await bar.getByRole("button", { name: "Cancel" }).tap();
  await look("a bulk action on a phone");
  await page.getByRole("dialog").getByRole("button", { name: /^Cancel 2/ }).tap();
  await until(async () => (await api("GET", "/v1/runs?state=cancelled")).items.length === 2, "two runs are cancelled");
  await page.getByRole("button", { name: "Select", exact: true }).tap();
  await page.getByRole("checkbox", { name: "Select all rows on this page" }).tap();
  await page.getByText("3 rows selected").waitFor();
  await page.getByRole("button", { name: "Done" }).tap();
  if (await page.getByRole("checkbox").count()) throw new Error("the boxes stay");
}
