import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import { LongestScript, type SlowScript } from './longest-script.js';

/** Short, so that it is known what Redis did meanwhile: a fault, or a wait for a processor. */
const EVERY_MS = 250;
/** A Redis that is in trouble answers later, or has forgotten what it noted. */
const PATIENCE_MS = 1_000;

/**
 * Asks again and again for the longest script of the workers that was executed since, and tells it. What a server has executed since the
 * last look when it is killed is not known.
 */
export class ScriptWatch {
  readonly #scripts = new Map<Redis, LongestScript>();
  #isOver = false;

  constructor(
    private readonly admins: () => readonly Redis[],
    private readonly tell: (longest: SlowScript, from: number) => void,
  ) {
    void this.#watch();
  }

  end(): void {
    this.#isOver = true;
  }

  async #watch(): Promise<void> {
    for (let [from, now] = [0, machineNow()]; !this.#isOver; [from, now] = [now, machineNow()]) {
      await Promise.all(this.admins().map((admin) => Promise.race([this.#look(admin, from), sleep(PATIENCE_MS)])));
      await sleep(EVERY_MS);
    }
  }

  async #look(admin: Redis, from: number): Promise<void> {
    const scripts = this.#scripts.get(admin) ?? new LongestScript(admin);
    this.#scripts.set(admin, scripts);
    const longest = await scripts.take();
    if (longest && !this.#isOver) this.tell(longest, from);
  }
}
