import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "../src/recollect/doors/web/static",
    emptyOutDir: true,
    target: "es2022",
    // Nothing as data: in the page itself, so that the content security policy can be strict.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
