import type { LockOptions } from '../../lib/core/api/lock-options.js';
import type { FakeForeignServer } from '../support/world/fake-foreign-lock.js';
import type { Instance, LockWorld } from '../support/world/lock-world.js';
import { track } from '../support/expect/tracked.js';
import { SeededRandom } from '../support/world/seeded-random.js';
import { useForeignWorld } from './foreign-world.js';

const KEY = 'old:stock';
const OLD_LEASE_MS = 30_000;

/** How an old process behaves: how long it works under its lock, and how long it pauses before it asks again. */
interface OldCode {
  readonly holdMs: number;
  readonly retryMs: number;
}

describe('a call that takes the lock of another library, beside old processes that ask for it all the time', () => {
  let world: LockWorld;
  let server: FakeForeignServer;
  let a: Instance;
  let options: LockOptions;

  useForeignWorld({ leaseMs: 20_000, waitMs: 60_000 }, (here) => ({ world, server, a, options } = here));

  const later = (ms: number, then: () => void): void => void world.clock.setTimer(then, ms);
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => later(ms, resolve));

  /** Each of them takes the lock again and again, for as long as the test goes on. */
  function startOld(count: number, { holdMs, retryMs }: OldCode): { readonly grants: () => number } {
    const random = new SeededRandom(7);
    let grants = 0;
    const upTo = (ms: number): number => ms * random.fraction();
    for (let number = 0; number < count; number++) {
      const ask = (): void => {
        if (server.ownerOf(KEY) !== undefined) return later(retryMs, ask);
        grants++;
        server.put(KEY, 'an old pod', OLD_LEASE_MS);
        later(holdMs, () => {
          server.delete(KEY);
          later(upTo(10), ask);
        });
      };
      later(upTo(retryMs), ask);
    }
    return { grants: () => grants };
  }

  it.each<OldCode>([
    { holdMs: 3, retryMs: 10 },
    { holdMs: 50, retryMs: 10 },
    { holdMs: 400, retryMs: 10 },
  ])('has its share: $holdMs ms of work, asked for every $retryMs ms', async ({ holdMs, retryMs }) => {
    const old = startOld(3, { holdMs, retryMs });
    let ours = 0;
    const work = async (): Promise<void> => {
      for (;;) {
        await a.locks.using('stock', options, async () => {
          ours++;
          await sleep(holdMs);
        });
        await sleep(5);
      }
    };
    void track(work());
    await world.clock.advance(250 * (holdMs + 10));
    // At least half of what one of the three old ones has.
    expect(ours).toBeGreaterThan(old.grants() / 6);
  });

  it('asks rarely again for a holder that stays, though it renews its lease', async () => {
    server.put(KEY, 'an old pod', OLD_LEASE_MS);
    const lease = track(a.locks.acquire('stock', options));
    // Five take it from one another, and the last one stays.
    for (let taken = 0; taken < 5; taken++) {
      await world.clock.advance(200);
      server.put(KEY, 'another old pod', OLD_LEASE_MS);
    }
    await world.clock.advance(7_000);
    const before = server.commands.length;
    for (let renewed = 0; renewed < 4; renewed++) {
      server.put(KEY, 'another old pod', OLD_LEASE_MS);
      await world.clock.advance(4_000);
    }
    expect(lease.state).toBe('pending');
    // 160 times in 16 s, and a few times more just after each renewal.
    expect(server.commands.length - before).toBeLessThan(250);
  });
});
