import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const LICENCE_FILE = /^(licen[cs]e|copying)/i;

const directories = new Set<string>();

function note(modules: readonly string[]): void {
  for (const id of modules) {
    const found = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replaceAll("\\", "/").replace(/^\0/, ""));
    if (found && existsSync(join(found[0], "package.json"))) directories.add(found[0]);
  }
}

/** Workers have bundles of their own, which are written before that of the page. */
export function thirdPartyOfWorkers(): Plugin {
  return {
    name: "foliot-third-party-of-workers",
    apply: "build",
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) if (file.type === "chunk") note(file.moduleIds);
    },
  };
}

/** Writes THIRD_PARTY.txt: the packages inside the bundles with their licences. Refuses a licence that is not permissive. */
export function thirdParty(): Plugin {
  return {
    name: "foliot-third-party",
    apply: "build",
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) if (file.type === "chunk") note(file.moduleIds);
      const parts = [...directories].sort().map((directory) => {
        const told = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Record<string, string>;
        if (!/^(MIT|ISC|BSD-[23]-Clause|Apache-2.0|0BSD)$/.test(told.license ?? ""))
          this.error(`${told.name} has the licence ${told.license}; only permissive ones are shipped`);
        const file = readdirSync(directory).find((name) => LICENCE_FILE.test(name));
        const text = file ? readFileSync(join(directory, file), "utf8").trim() : `Licence: ${told.license}`;
        return `${told.name} ${told.version}\n\n${text}\n`;
      });
      const title = "The web UI of Foliot contains these packages.\n";
      this.emitFile({ type: "asset", fileName: "THIRD_PARTY.txt", source: [title, ...parts].join(`\n${"-".repeat(80)}\n\n`) });
    },
  };
}
