import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { machineNow } from '../../../test/support/expect/machine-now.js';

const EVERY_MS = 20;
/** What is answered sooner is not told. */
const LATE_MS = 50;

/** Asks Redis again and again, and tells when it was answered late. Where nobody looks at the queues, nothing else shows that. */
export class AnswerWatch {
  #isOver = false;

  constructor(
    private readonly redis: () => readonly Pick<Redis, 'ping'>[],
    private readonly tell: (from: number) => void,
    private readonly now = machineNow,
  ) {
    void this.#watch();
  }

  end(): void {
    this.#isOver = true;
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const from = this.now();
      await Promise.all(this.redis().map((each) => each.ping().catch(() => undefined)));
      if (this.now() - from > LATE_MS && !this.#isOver) this.tell(from);
      await sleep(EVERY_MS);
    }
  }
}
