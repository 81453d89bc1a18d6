import { LOCK_DEFAULTS } from '../../../lib/kernel/api/lock-options.js';
import type { LockClientOptions } from '../../../lib/kernel/wire.js';
import { resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { lostOnTheWay } from '../../support/world/scripted-store.js';
import { Fleet } from '../../support/world/singleton-fleet.js';
import { track } from '../../support/expect/tracked.js';

const { leaseMs } = LOCK_DEFAULTS;
/** Moments within the time between two renewals, and right before the next one. */
const AGES = [0, 0.25, 0.5, 0.75, 0.99].map((part) => Math.round((part * leaseMs) / 3));

describe('with the default lengths', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  it('no call fails if a holder dies, and the first waiter has the lock within 1.1 leases', async () => {
    await a.locks.acquire('stock');
    a.store.all(lostOnTheWay);
    const call = track(b.locks.acquire('stock'));
    await world.clock.advance(1.1 * leaseMs);
    expect(call.state).toBe('fulfilled');
  });

  it.each(AGES)('no lease is lost to an event loop that is blocked for 8 s, %d ms after a renewal', async (ageMs) => {
    const lease = await a.locks.acquire('stock');
    await world.clock.advance(leaseMs / 3 + ageMs);
    world.clock.block(8_000);
    await settle();
    expect(lease.isHeld()).toBe(true);
    expect(await lease.verify()).toBe(true);
    await lease.release();
  });

  it.each<[string, LockClientOptions['defaults'], number]>([
    ['30 s', undefined, 30_000],
    ['what the module states', { leaseMs: 4_000 }, 4_000],
    ['no more than a store grants nothing after it has lost its locks', { restartQuarantineMs: 20_000 }, 20_000],
  ])('the run of a job has a lease of %s', async (_, defaults, expected) => {
    const fleet = new Fleet({ lock: {} });
    const member = fleet.member('anna', defaults && { defaults });
    const run = member.fire('09:00');
    await fleet.clock.advance(1_000);
    expect(run.state).toBe('fulfilled');
    expect(member.tickStore.claims.map(({ claim }) => claim.leaseMs)).toEqual([expected]);
  });

  it.each([
    [{}, 30_000],
    [{ leaseMs: 4_000 }, 4_000],
    [{ restartQuarantineMs: 20_000 }, 20_000],
  ])('a restarted node of a quorum votes when all leases have ended: %j', (options, expected) => {
    const quorum = { connections: ['redis://a', 'redis://b', 'redis://c'] };
    expect(resolveModuleOptions({ quorum, ...options }).defaults.restartQuarantineMs).toBe(expected);
  });
});
