import type { Ownership } from '../core/lock-store.js';
import type { Tick, TickClaim, TickLedger, TickReply } from '../core/tick-ledger.js';
import type { RedisLockStore } from './redis-lock-store.js';
import { CLAIM_TICK } from './scripts/claim-tick.js';
import { FINISH_TICK } from './scripts/finish-tick.js';

/** Claims of ticks: one key a tick, beside the job's lock, which Redis forgets by itself. */
export class RedisTickLedger implements TickLedger {
  constructor(private readonly store: RedisLockStore) {}

  async claim({ resource, tick }: Tick, claim: TickClaim): Promise<TickReply> {
    const { keys } = this.store;
    const { ownership, leaseMs, keepMs, overlap, rescue } = claim;
    const [status, value] = await this.store.run<[TickReply['status'], number]>(
      CLAIM_TICK,
      [keys.lock(resource), keys.tick(resource, tick), keys.fence()],
      [ownership.owner, leaseMs, keepMs, overlap, rescue ? '1' : '0'],
    );
    if (status === 'granted') return { status, fencingToken: value };
    return status === 'claimed' || status === 'taken' ? { status, ttlMs: value } : { status };
  }

  async finish({ resource, tick }: Tick, { owner }: Ownership, keepMs: number): Promise<void> {
    await this.store.run(FINISH_TICK, [this.store.keys.tick(resource, tick)], [owner, keepMs]);
  }
}
