// What every journey does with a page: it looks for what keeps people out, and for breaches of the policy.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Repeats a question until its answer is true. */
export async function until(question, what) {
  const end = Date.now() + 60_000;
  for (;;) {
    const answer = await question();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Watches a page. `look` is for a moment at which it stands still. */
export async function equipped(page, base, note) {
  // Told at once, so that none is lost when the page goes elsewhere.
  const violations = [];
  await page.exposeFunction("noteViolation", (told) => violations.push(told));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => window.noteViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  page.on("pageerror", (error) => note(`error in the page: ${error}`));
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(base)) note(`request to ${request.url()}`);
  });

  async function checkPolicy(what) {
    // Calls from the page arrive in order, so this one comes after all reports.
    await page.evaluate(() => 1);
    for (const violation of violations.splice(0)) note(`${what}: the policy was violated by ${violation}`);
  }

  /** Looks for what keeps people out, in both themes, and for reports of the policy. */
  async function look(what) {
    // A tip belongs to no landmark.
    await page.mouse.move(0, 0);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      // The new theme is on the screen two frames after the last transition.
      await page.evaluate(async () => {
        const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
        await frame();
        await Promise.allSettled(document.getAnimations().filter((one) => one.effect?.getComputedTiming().iterations !== Infinity).map((one) => one.finished));
        await frame();
        await frame();
      });
      if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
      // The dark theme differs in its colours only.
      const options = colorScheme === "light" ? { runOnly: RULES } : { runOnly: { type: "rule", values: ["color-contrast"] } };
      const found = await page.evaluate((asked) => window.axe.run(document, { ...asked, resultTypes: ["violations"] }), options);
      for (const violation of found.violations)
        for (const node of violation.nodes) note(`${what}, ${colorScheme}: ${violation.id} at ${node.target.join(" ")}: ${node.failureSummary?.split("\n").slice(1).join("; ")}`);
    }
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    if (wide) note(`${what}: the page is wider than the window`);
    await checkPolicy(what);
  }
  return { look, checkPolicy };
}
