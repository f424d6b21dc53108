import type { Plugin } from "vite";

const ORDER = "@layer reset,tokens,base,components,pages,overrides;";

/** Says the order of the layers at the start of every style sheet: whichever is loaded first decides it. */
export function layerOrder(): Plugin {
  return {
    name: "foliot-layer-order",
    apply: "build",
    enforce: "post",
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle))
        if (file.type === "asset" && file.fileName.endsWith(".css")) file.source = ORDER + (typeof file.source === "string" ? file.source : new TextDecoder().decode(file.source));
    },
  };
}
