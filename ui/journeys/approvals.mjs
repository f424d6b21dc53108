export const isPhone = true;

/** Somebody with a phone sees what waits for a decision, approves one and refuses the other. */
export default async function journey({ page, base, api, until, look }) {
  await page.goto(`${base}/ui/approvals`);
  await page.getByRole("heading", { name: "No run waits for a decision" }).waitFor();
  await look("no approvals");
  const step = { key: "decide", signal: { timeout_seconds: 3600 }, metadata: { amount: "<b>12,000 EUR</b>", by: "Ada" } };
  const { id } = await api("POST", "/v1/workflows", { name: "payout", steps: [step, { key: "pay", command: "echo paid", after: ["decide"] }] });
  const { id: refund } = await api("POST", "/v1/jobs", { name: "refund", command: "echo refunded", signal: {} });
  // They come without a reload.
  const first = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "decide" }) });
  await first.getByText("<b>12,000 EUR</b>").waitFor();
  await page.getByRole("button", { name: "Refuse refund" }).waitFor();
  await look("approvals");
  await page.getByRole("button", { name: "Approve decide" }).click();
  await page.getByRole("textbox", { name: /Note/ }).fill("fine with me");
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await until(async () => (await api("GET", `/v1/workflows/${id}`)).state === "succeeded", "the workflow goes on");
  await page.getByRole("button", { name: "Refuse refund" }).click();
  await page.getByRole("textbox", { name: /Note/ }).fill("too expensive");
  await page.getByRole("dialog").getByRole("button", { name: "Refuse" }).click();
  await until(async () => (await api("GET", `/v1/runs/${refund}`)).state === "failed", "the refused run fails");
  await page.getByRole("heading", { name: "No run waits for a decision" }).waitFor();
}
