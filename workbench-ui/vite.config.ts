import { defineConfig } from "vite";

// Names without hashes: the output is committed and compared by CI, and the server revalidates by content (ETag).
export default defineConfig(({ mode }) => ({
  base: "./",
  build: {
    target: "es2022",
    outDir: mode === "development" ? "dist" : "../crates/typhon-workbench/assets",
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    sourcemap: mode === "development",
    minify: mode !== "development",
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  worker: {
    format: "es" as const,
    rollupOptions: { output: { entryFileNames: "[name].js", chunkFileNames: "worker-[name].js" } },
  },
}));
