/** Offers a text to the person as a file. */
export function saveFile(content: string, name: string, kind: "text/csv" | "application/json"): void {
  const url = URL.createObjectURL(new Blob([content], { type: kind }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
