/** A run waits in a paused queue: the page says why, and the button opens the gate. */
export default async function journey({ page, base, api, look }) {
  await api("POST", "/v1/queues/default/pause", { reason: "the mail server is down" });
  const { id } = await api("POST", "/v1/jobs", { name: "waits", command: "echo at last" });
  await page.goto(`${base}/ui/runs/${id}`);
  await page.getByText(/the mail server is down/).first().waitFor();
  await look("why");
  await page.getByRole("button", { name: "Resume the queue" }).click();
  await page.getByText("Resumed.").waitFor();
  await page.getByText("Succeeded").first().waitFor();
}
