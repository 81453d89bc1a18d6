import type { Tick, TickLedger, TickProgress } from '../core/tick-ledger.js';
import type { RedisLockStore } from './redis-lock-store.js';
import { CLAIM_TICK } from './scripts/claim-tick.js';
import { FINISH_TICK } from './scripts/finish-tick.js';

/** Claims of ticks: one key a tick, which Redis forgets by itself. */
export class RedisTickLedger implements TickLedger {
  constructor(private readonly store: RedisLockStore) {}

  async claim(tick: Tick, claimant: string, keepMs: number): Promise<TickProgress> {
    return (await this.store.run(CLAIM_TICK, [this.#key(tick)], [claimant, keepMs])) as TickProgress;
  }

  async progress(tick: Tick): Promise<TickProgress> {
    return (await this.store.run(CLAIM_TICK, [this.#key(tick)], ['', ''])) as TickProgress;
  }

  async finish(tick: Tick, keepMs: number): Promise<void> {
    await this.store.run(FINISH_TICK, [this.#key(tick)], [keepMs]);
  }

  #key({ job, tick }: Tick): string {
    return this.store.keys.tick(job, tick);
  }
}
