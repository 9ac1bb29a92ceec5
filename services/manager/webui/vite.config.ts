// How the page is built: relative addresses (it may lie under any prefix), no inline script or
// style (the manager's Content-Security-Policy forbids them), names that hold a content hash.
import { defineConfig } from "vite";

import about from "./package.json" with { type: "json" };

export default defineConfig({
  base: "./",
  define: { PAGE_VERSION: JSON.stringify(about.version) },
  build: {
    outDir: "dist",
    assetsDir: "static",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // What most views need is one file: a file of its own for each module costs a request.
          groups: [
            {
              name: "common",
              test: /preact|\/src\/(api|components|state|format)/,
              minShareCount: 3,
            },
          ],
        },
      },
    },
    license: { fileName: "licenses.md" }, // of what is built in
  },
  server: {
    // `npm run dev` shows the experiment of a running manager at its usual port.
    proxy: { "/api": "http://127.0.0.1:8080" },
  },
});
