/** Every page, with data and in both themes: nothing keeps people out, and nothing interrupts them. */
import { fill, open, pathsOf } from "./filled.mjs";

export default async function journey({ page, base, api, until, look }) {
  const filled = await fill(api, until);
  await open(page, base, "/runs");
  for (const path of await pathsOf(page, filled)) {
    await open(page, base, path);
    // What changes by itself is told politely; an alert only answers somebody's action.
    const loud = await page.locator("[aria-live=assertive], [role=alert]").count();
    if (loud) throw new Error(`${path} interrupts without being asked`);
    await look(path);
  }
}
