import type { Ownership } from '../core/lock-store.js';
import type { ClaimChange, TickClaims } from '../core/tick-claims.js';
import type { Tick, TickClaim, TickLedger, TickReply } from '../core/tick-ledger.js';
import { ALWAYS, CLAIM } from './durable-terms.js';
import type { RedisLockStore } from './redis-lock-store.js';
import { CLAIM_TICK } from './scripts/claim-tick.js';
import { EXCHANGE_CLAIM } from './scripts/exchange-claim.js';
import { FINISH_TICK } from './scripts/finish-tick.js';

/** Claims of ticks: one key a tick, beside the job's lock, which Redis forgets by itself. */
export class RedisTickLedger implements TickLedger, TickClaims {
  constructor(private readonly store: RedisLockStore) {}

  async claim({ resource, tick }: Tick, claim: TickClaim): Promise<TickReply> {
    const { keys } = this.store;
    const { ownership, leaseMs, keepMs, overlap, rescue } = claim;
    const lock = keys.lock(resource);
    const [status, value] = await this.store.run<[TickReply['status'], number]>(
      CLAIM_TICK,
      [lock, keys.tick(resource, tick), keys.fence(lock)],
      [ownership.owner, leaseMs, keepMs, overlap, rescue ? '1' : '0'],
      undefined,
      CLAIM,
    );
    if (status === 'granted') return { status, fencingToken: value };
    return status === 'claimed' || status === 'taken' ? { status, ttlMs: value } : { status };
  }

  async finish({ resource, tick }: Tick, { owner }: Ownership, keepMs: number): Promise<void> {
    await this.store.run(FINISH_TICK, [this.store.keys.tick(resource, tick)], [owner, keepMs], undefined, ALWAYS);
  }

  exchange({ resource, tick }: Tick, change: ClaimChange): Promise<string | null> {
    const { to = '', from = '', force, drop = '', keepMs = '' } = change;
    return this.store.run(
      EXCHANGE_CLAIM,
      [this.store.keys.tick(resource, tick)],
      [to, from, force ? 1 : 0, drop, keepMs],
    );
  }
}
