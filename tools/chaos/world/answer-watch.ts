import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { machineNow } from '../../../test/support/expect/machine-now.js';

const EVERY_MS = 20;
/** Faster replies are not recorded. */
const LATE_MS = 50;

/** Pings Redis repeatedly and records late replies. Without an observer, nothing else shows them. */
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
