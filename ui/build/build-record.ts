import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";

interface Chunk {
  type: "chunk";
  fileName: string;
  code: string;
  isEntry: boolean;
  imports: string[];
  name: string;
  facadeModuleId: string | null;
  viteMetadata?: { importedCss: Set<string> };
}

/** Writes build.json: the hash of the sources, and the sizes that the tests compare with the budgets. */
export function buildRecord(): Plugin {
  return {
    name: "foliot-build-record",
    apply: "build",
    enforce: "post",
    generateBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter((file) => file.type === "chunk") as unknown as Chunk[];
      const named = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
      const reach = (start: Chunk, seen = new Set<string>()): Set<string> => {
        if (seen.has(start.fileName)) return seen;
        seen.add(start.fileName);
        for (const name of start.imports) {
          const next = named.get(name);
          if (next) reach(next, seen);
        }
        return seen;
      };
      const gzip = (content: string | Uint8Array) => gzipSync(content, { level: 9 }).length;
      const entry = chunks.find((chunk) => chunk.isEntry);
      if (!entry) return this.error("the build has no entry");
      const initial = reach(entry);
      const sizeOf = (names: Iterable<string>) =>
        [...names].reduce((sum, name) => sum + gzip(named.get(name)?.code ?? ""), 0);
      const css = (names: Iterable<string>) => {
        const files = new Set([...names].flatMap((name) => [...(named.get(name)?.viteMetadata?.importedCss ?? [])]));
        return [...files].reduce((sum, name) => {
          const file = bundle[name];
          return sum + (file?.type === "asset" ? gzip(file.source) : 0);
        }, 0);
      };
      const routes = Object.fromEntries(
        chunks
          .filter((chunk) => chunk.facadeModuleId?.includes("/src/pages/"))
          .map((chunk) => [chunk.name, sizeOf([...reach(chunk)].filter((name) => !initial.has(name)))]),
      );
      const record = {
        sources: process.env.FOLIOT_UI_SOURCES ?? "",
        gzip: { initialScript: sizeOf(initial), initialStyle: css(initial), allScript: sizeOf(named.keys()), routes },
      };
      this.emitFile({ type: "asset", fileName: "build.json", source: `${JSON.stringify(record, null, 1)}\n` });
    },
  };
}
