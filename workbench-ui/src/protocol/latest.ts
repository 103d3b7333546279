/** Runs one task at a time; a newer one aborts the one before (latest wins). */
export class Latest {
  private controller: AbortController | null = null;

  /** Resolves to what the task gives, or to undefined when a newer task took its place. */
  async run<T>(task: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    try {
      const result = await task(controller.signal);
      return controller.signal.aborted ? undefined : result;
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      throw error;
    } finally {
      if (this.controller === controller) this.controller = null;
    }
  }

  abort(): void {
    this.controller?.abort();
    this.controller = null;
  }
}
