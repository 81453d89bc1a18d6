import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { HistoryLog } from '../history/history-log.js';
import { LongestScript } from './longest-script.js';

const EVERY_MS = 500;
/** A Redis that is in trouble answers later, or has forgotten what it noted. */
const PATIENCE_MS = 1_000;

/** Asks again and again for the longest script of the workers that was executed since, and says so. */
export class ScriptWatch {
  #isOver = false;

  constructor(
    private readonly admins: () => readonly Redis[],
    private readonly log: HistoryLog,
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
    const longest = await new LongestScript(admin).take();
    if (longest && !this.#isOver) this.log.say({ type: 'script', from, ...longest });
  }
}
