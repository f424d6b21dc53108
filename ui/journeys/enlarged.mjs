/** At 200 % zoom, with forced colours and without motion: every page can be read and used. */
import { fill, open, pathsOf } from "./filled.mjs";

export default async function journey({ page, base, api, until }) {
  const filled = await fill(api, until);
  // 1440 x 900 at 200 %.
  await page.setViewportSize({ width: 720, height: 450 });
  await open(page, base, "/runs");
  const problems = [];
  const paths = await pathsOf(page, filled);
  for (const path of paths) {
    await open(page, base, path);
    const cut = await page.evaluate(() => {
      const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
      const rows = [...document.querySelectorAll("[role=row]")].filter((row) => row.scrollWidth > row.clientWidth + 1);
      return wide > 0 || rows.length > 0 ? `${wide} pixels too wide, ${rows.length} rows cut off` : "";
    });
    if (cut) problems.push(`${path}, enlarged: ${cut}`);
    const moving = await page.evaluate(() => document.getAnimations().filter((one) => one.playState === "running" && Number(one.effect?.getComputedTiming().duration) > 20).length);
    if (moving) problems.push(`${path}: ${moving} animations run although the system asks for none`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ forcedColors: "active" });
  // The frame and the lists; what is inside of one thing is made of the same parts.
  for (const path of paths.filter((one) => one.split("/").length === 2)) {
    await open(page, base, path);
    const lost = await page.evaluate(() => {
      const style = (one) => getComputedStyle(one);
      const isMarked = (one) => style(one).outlineStyle !== "none" || style(one).borderBottomStyle !== "none";
      const chosen = [...document.querySelectorAll("[aria-pressed=true], [aria-current=page]")].filter((one) => one.checkVisibility() && !isMarked(one));
      return chosen.map((one) => one.textContent || one.getAttribute("aria-label"));
    });
    if (lost.length) problems.push(`${path}, forced colours: nothing marks ${lost.join(", ")}`);
  }
  await open(page, base, "/runs");
  await page.keyboard.press("Tab");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  if (outline === "none") problems.push("forced colours: the focus cannot be seen");
  if (problems.length) throw new Error(problems.join("\n"));
}
