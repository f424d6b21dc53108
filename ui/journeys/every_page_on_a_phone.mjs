export const isPhone = true;

/** Every page on a narrow phone: no wider than the screen, and nothing too small for a finger. */
import { fill, open, pathsOf } from "./filled.mjs";

// Half of 44 px, less what rounding takes.
const REACH = 21;

export default async function journey({ page, base, api, until }) {
  const filled = await fill(api, until);
  await page.setViewportSize({ width: 360, height: 740 });
  await open(page, base, "/runs");
  const problems = [];
  for (const path of await pathsOf(page, filled)) {
    await open(page, base, path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wide > 0) problems.push(`${path} is ${wide} pixels too wide for a phone`);
    const small = await page.evaluate((reach) => {
      // Links in a sentence, and in a card that leads there as a whole, may be as high as their text.
      const found = [...document.querySelectorAll("button, input, select, textarea, summary, header a, nav a")].filter((one) => one.checkVisibility() && !one.closest("[inert], p, [role=row], pre") && !one.matches("[class*=skip], [class*=step], [class*=_day_], [role=log] *"));
      return found
        .filter((one) => {
          one.scrollIntoView({ block: "center" });
          const target = one.closest("label") ?? one;
          const { top, bottom, left, right, width, height } = target.getBoundingClientRect();
          if (width === 0 || height === 0) return false;
          const hits = (x, y) => {
            const at = document.elementFromPoint(x, y);
            return at !== null && (target.contains(at) || at.contains(target));
          };
          const [x, y] = [(left + right) / 2, (top + bottom) / 2];
          return !hits(x, y - reach) || !hits(x, y + reach);
        })
        .map((one) => `${one.tagName} ${one.className} “${(one.textContent || one.getAttribute("aria-label") || "").trim().slice(0, 30)}”`);
    }, REACH);
    for (const one of new Set(small)) problems.push(`${path}: too small for a finger: ${one}`);
  }
  if (problems.length) throw new Error(problems.join("\n"));
}
