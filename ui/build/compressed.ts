import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const COMPRESSIBLE = /\.(js|css|svg|txt|json|webmanifest)$/;

/** Writes a .br and a .gz beside every file that is worth it, so that the server compresses nothing. */
export function compressed(): Plugin {
  let directory = "";
  return {
    name: "foliot-compressed",
    apply: "build",
    configResolved(config) {
      directory = join(config.root, config.build.outDir);
    },
    closeBundle() {
      for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
        if (!COMPRESSIBLE.test(name) || name === "build.json") continue;
        const content = readFileSync(join(directory, name));
        if (content.length < 512) continue;
        const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } };
        writeFileSync(join(directory, `${name}.br`), brotliCompressSync(content, options));
        writeFileSync(join(directory, `${name}.gz`), gzipSync(content, { level: 9 }));
      }
    },
  };
}
