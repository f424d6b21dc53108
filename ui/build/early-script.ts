import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

/** Puts a small classic script into the head, where it runs before the first paint. The policy forbids inline scripts. */
export function earlyScript(path: string): Plugin {
  const source = readFileSync(path, "utf8");
  const fileName = `assets/early-${createHash("sha256").update(source).digest("hex").slice(0, 8)}.js`;
  let isBuild = false;
  return {
    name: "foliot-early-script",
    configResolved(config) {
      isBuild = config.command === "build";
    },
    generateBundle() {
      this.emitFile({ type: "asset", fileName, source });
    },
    transformIndexHtml: () => [{ tag: "script", attrs: { src: `/ui/${isBuild ? fileName : path}` }, injectTo: "head-prepend" }],
  };
}
