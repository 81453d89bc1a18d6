import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { machineNow } from '../../support/machine-now.js';
import type { HistoryLog } from '../history/history-log.js';

const EVERY_MS = 500;
/** What takes no longer is not noted, by Redis. */
export const SHORT_SCRIPT_US = 1_000;
/** More than come in that time. */
const KEPT = 1_024;
/** A Redis that is in trouble answers later, or has forgotten what it noted. */
const PATIENCE_MS = 1_000;

/** What SLOWLOG says of a command: its number, when, for how long, the arguments, whose. */
type Noted = readonly [number, number, number, readonly string[], string, string];

/** Asks Redis again and again for the longest script of the workers that it has executed since, and says so. */
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
    const replies = await admin
      .multi([
        ['slowlog', 'get', String(KEPT)],
        ['slowlog', 'reset'],
        // Each time: a server that was started anew has forgotten it.
        ['config', 'set', 'slowlog-log-slower-than', String(SHORT_SCRIPT_US), 'slowlog-max-len', String(KEPT)],
      ])
      .exec()
      .catch(() => null);
    if (this.#isOver) return;
    let longest: Noted | undefined;
    for (const noted of (replies?.[0]?.[1] ?? []) as readonly Noted[]) {
      const [, , us, [command], , client] = noted;
      if (!/^EVAL/i.test(command!) || !client.startsWith('nestjs-redis-lock')) continue;
      if (us > (longest?.[2] ?? 0)) longest = noted;
    }
    // The first of its keys says what it was about.
    if (longest) this.log.say({ type: 'script', from, ms: longest[2] / 1_000, key: longest[3][3] ?? '' });
  }
}
