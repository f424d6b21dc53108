import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { buildRecord } from "./build/build-record.ts";
import { compressed } from "./build/compressed.ts";
import { earlyScript } from "./build/early-script.ts";
import { layerOrder } from "./build/layer-order.ts";
import { thirdParty, thirdPartyOfWorkers } from "./build/third-party.ts";

const server = process.env.FOLIOT_URL || "http://127.0.0.1:8000";

export default defineConfig({
  base: "/ui/",
  resolve: { alias: { "~": fileURLToPath(new URL("./src", import.meta.url)) } },
  plugins: [react(), earlyScript("src/early.js"), thirdParty(), layerOrder(), buildRecord(), compressed()],
  worker: { format: "es", plugins: () => [thirdPartyOfWorkers()] },
  build: {
    outDir: "../src/foliot/ui/dist",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox128", "safari18"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
  },
  experimental: {
    // Scripts and styles find each other relative to themselves, so that a proxy may put a path in front of /ui/.
    renderBuiltUrl: (_filename, { hostType }) => (hostType === "html" ? undefined : { relative: true }),
  },
  server: { port: 5173, proxy: { "/v1": server, "/healthz": server } },
});
