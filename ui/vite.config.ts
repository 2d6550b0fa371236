import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The server sends these files with a strict content security policy: nothing may be inlined.
export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    outDir: "../src/afl/server/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:7400", "/auth": "http://127.0.0.1:7400" } },
});
