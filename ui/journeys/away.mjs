/** Pages that are not there say so. */
export default async function journey({ page, base, look }) {
  await page.goto(`${base}/ui/runs/0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00`);
  await page.getByRole("heading", { name: "There is no run here" }).waitFor();
  await look("not found");
  await page.goto(`${base}/ui/nowhere`);
  await page.getByRole("heading", { name: "There is no page here" }).waitFor();
}
