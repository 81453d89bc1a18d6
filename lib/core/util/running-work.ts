/** Work that was started and has not ended. */
export class RunningWork {
  readonly #running = new Set<Promise<void>>();

  add(work: Promise<unknown>): void {
    const end = (): void => void this.#running.delete(ended);
    const ended: Promise<void> = work.then(end, end);
    this.#running.add(ended);
  }

  /** Resolves when none of it runs any more, however it ended. */
  async whenDone(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
