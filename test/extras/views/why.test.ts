import { conclusionsOf } from '../../../lib/extras/views/why.js';
import type { FleetReport } from '../../../lib/features/fleet/core/roll/lock-fleet.js';
import type { Holder } from '../../../lib/kernel/api/holder.js';
import type { LockState } from '../../../lib/kernel/store/lock-state.js';

const TEN_MINUTES = 600_000;

function conclusion(
  first: Partial<Holder> | undefined,
  second: Partial<Holder>,
  life?: 'alive' | 'silent' | 'unsubscribed',
) {
  const holder = (seen: Partial<Holder>): Holder => ({
    instanceId: 'api-3:4711',
    isThisProcess: false,
    mode: 'exclusive',
    fencingToken: 7,
    ttlMs: TEN_MINUTES,
    leaseMs: TEN_MINUTES,
    heldMs: 0,
    depth: 1,
    ...seen,
  });
  const state = (...holders: Holder[]): LockState => ({
    resource: 'x',
    mode: 'exclusive',
    holders,
    ttlMs: 1,
    waiters: [],
  });
  const roll = {
    instances: life === 'alive' ? [{ instanceId: 'api-3:4711', held: [] }] : [],
    silent: life === 'silent' ? ['api-3:4711'] : [],
    subscribed: [],
    unreadable: 0,
  } as unknown as FleetReport;
  const [text] = conclusionsOf(first ? state(holder(first)) : state(), state(holder(second)), life && roll);
  return text;
}

const at = (heldMs: number, ttlMs: number) => ({ heldMs, ttlMs });

it.each<[string, string, Parameters<typeof conclusion>]>([
  [
    'a renewal',
    'its lease was renewed between two checks: the holder is alive.',
    [at(9_000, 591_000), at(10_000, TEN_MINUTES), 'unsubscribed'],
  ],
  [
    'a renewal that leaves less than the first look saw',
    'its lease was renewed between two checks: the holder is alive.',
    [at(10, 599_990), at(1_000, 599_700)],
  ],
  ['a grant', 'its lease was granted between two checks: the holder is alive.', [undefined, at(1, TEN_MINUTES)]],
  [
    'a lease that was renewed, of a process without a subscription that has missed two renewals',
    'it has no subscription, and has missed two renewals: the holder is dead. The lock is free in 2 min 30 s.',
    [at(999_000, 151_000), at(1_000_000, 150_000), 'unsubscribed'],
  ],
  [
    'a lease that was never renewed, of a process without a subscription',
    'it is unclear whether the holder is alive: a renewal is 4 min 10 s late, unless the lease is fixed. The lock is free in 2 min 30 s.',
    [at(449_000, 151_000), at(450_000, 150_000), 'unsubscribed'],
  ],
  [
    'a process without a subscription, before a renewal is due',
    'it is unclear whether the holder is alive: the next renewal is due in 3 min 11 s. The lock is free in 9 min 51 s.',
    [at(8_000, 592_000), at(9_000, 591_000), 'unsubscribed'],
  ],
  [
    'a process that answers',
    'its process answers: the holder is alive. The lease has 9 min 51 s left.',
    [at(8_000, 592_000), at(9_000, 591_000), 'alive'],
  ],
  [
    'a process that answers, and does not renew',
    'its process answers, but has not renewed this lease for 5 min 50 s. The lock is free in 4 min 10 s.',
    [at(349_000, 251_000), at(350_000, 250_000), 'alive'],
  ],
  [
    'a process that is frozen',
    'its process is connected, but does not answer: it is frozen, too busy, cut off from messages, or runs an older version of nestjs-redis-lock. The lock is free in 9 min 51 s unless the lease is renewed.',
    [at(8_000, 592_000), at(9_000, 591_000), 'silent'],
  ],
  [
    'nothing but the leases, before a renewal is due',
    'it is unclear whether the holder is alive: the next renewal is due in 3 min 11 s. The lock is free in 9 min 51 s.',
    [at(8_000, 592_000), at(9_000, 591_000)],
  ],
  [
    'a renewal that is late',
    'it is unclear whether the holder is alive: a renewal is 10 s late, unless the lease is fixed. The lock is free in 6 min 30 s.',
    [at(209_000, 391_000), at(210_000, 390_000)],
  ],
  [
    'a lease that was released',
    'it has released the lock, which minHoldMs keeps for another 10 min.',
    [undefined, { ...at(1, TEN_MINUTES), isKept: true }],
  ],
])('%s: %s', (_, text, args) => expect(conclusion(...args)).toBe(`api-3:4711: ${text}`));
