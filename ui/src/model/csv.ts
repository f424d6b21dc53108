/** CSV as spreadsheets read it. A text that a spreadsheet would take for a formula gets an apostrophe. */
export function csvOf(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  const safe = typeof value !== "number" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
