import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["tests/**/*.test.ts"], environment: "node", css: true, testTimeout: 60_000, reporters: ["dot"] } });
