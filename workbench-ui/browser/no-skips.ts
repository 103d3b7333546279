import type { FullResult, Reporter, TestCase, TestResult } from "@playwright/test/reporter";

/** In CI a test that was skipped is a test that failed. */
export default class NoSkips implements Reporter {
  private readonly skipped: string[] = [];

  onTestEnd(test: TestCase, result: TestResult): void {
    if (result.status === "skipped") this.skipped.push(test.titlePath().join(" › "));
  }

  onEnd(): Promise<{ status: FullResult["status"] } | undefined> {
    const isFault = process.env["CI"] !== undefined && this.skipped.length > 0;
    if (isFault) console.error(`skipped in CI:\n  ${this.skipped.join("\n  ")}`);
    return Promise.resolve(isFault ? { status: "failed" } : undefined);
  }
}
