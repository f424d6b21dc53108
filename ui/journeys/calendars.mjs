/** A calendar is made from a file, its effect on each job is seen before it is saved, and two people edit it at once. */
const holidays = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:<b>Christmas", "DTSTART;VALUE=DATE:20251225", "DTEND;VALUE=DATE:20251227", "RRULE:FREQ=YEARLY", "END:VEVENT", "BEGIN:VEVENT", "SUMMARY:Meeting", "DTSTART:20261225T090000Z", "END:VEVENT", "END:VCALENDAR"].join("\r\n");

export default async function journey({ page, base, api, until, look }) {
  await page.goto(`${base}/ui/calendars`);
  await page.getByRole("heading", { level: 2, name: "No calendars yet" }).waitFor();
  await look("no calendars");
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("bank holidays");
  await dialog.getByText(/Use letters, digits/).waitFor();
  await dialog.getByLabel("Name").fill("bank");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "bank" }).waitFor();
  await page.keyboard.press("i");
  await dialog.getByLabel("File").setInputFiles({ name: "days.ics", mimeType: "text/calendar", buffer: Buffer.from(holidays) });
  await dialog.getByText("<b>Christmas").first().waitFor();
  await dialog.getByText("1 event left out").waitFor();
  await look("import");
  await dialog.getByRole("button", { name: /^Add \d+ days$/ }).click();
  await page.getByLabel("Time zone", { exact: true }).fill("Europe/Berlin");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("bank is saved.").waitFor();
  const made = await api("GET", "/v1/calendars/bank");
  if (!made.dates.includes("2026-12-26") || made.timezone !== "Europe/Berlin") throw new Error(JSON.stringify(made));
  await api("POST", "/v1/jobs", { name: "payroll", cron: "0 9 * * *", timezone: "Europe/Berlin", calendar: "bank", command: "true" });
  await api("POST", "/v1/jobs", { name: "mondays", cron: "0 9 * * MON", timezone: "Europe/Berlin", calendar: "bank", command: "true" });
  await page.reload();
  await page.getByText("2 jobs use it").waitFor();
  await page.getByRole("button", { name: "Mon", exact: true }).click();
  const effect = page.getByRole("region", { name: "What this change does" });
  await effect.getByText("2 of 2 jobs fire at other times.").waitFor();
  await effect.getByText("never fires again").waitFor();
  await look("effects");
  await page.getByRole("button", { name: "Mon", exact: true }).click();
  // By keyboard alone: a day further along the year, and Save.
  const entry = page.locator('main button[data-date][tabindex="0"]');
  await entry.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await effect.getByText(/fires? at other times|No job fires/).waitFor();
  await api("PUT", "/v1/calendars/bank", { timezone: "Europe/Berlin", dates: made.dates, weekdays: ["SAT"] });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const conflict = page.getByRole("dialog", { name: /changed it meanwhile/ });
  await conflict.getByRole("row", { name: /Saturday/ }).waitFor();
  await look("three versions of a calendar");
  await conflict.getByRole("button", { name: "Keep both changes" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await until(async () => {
    const now = await api("GET", "/v1/calendars/bank");
    return now.weekdays[0] === "SAT" && now.dates.length === made.dates.length + 1;
  }, "both changes are there");
  await page.getByText("bank is saved.").last().locator("..").getByRole("button", { name: "Undo" }).click();
  await until(async () => (await api("GET", "/v1/calendars/bank")).dates.length === made.dates.length, "the change is undone");
}
