import { inspect } from 'node:util';
import type { LockEvent } from '../../../lib/kernel/events/events.js';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { eventually, rejection, untilAborted } from '../../support/expect/eventually.js';
import { useQuorum, useServers } from '../../support/redis/quorum-servers.js';

const LEASE_MS = 800;

describe('with three of five nodes down', () => {
  const servers = useServers(5);
  const start = useQuorum(servers);

  it('users get the cause, node by node; leases are lost by their deadline; and all continues when one is back', async () => {
    const events: LockEvent[] = [];
    const locks = await start({ leaseMs: LEASE_MS, observers: [(event) => events.push(event)], nodeTimeoutMs: 300 });
    const lease = await locks.acquire('stock');
    const [a, b, c] = servers();
    await Promise.all([a!.kill(), b!.pause(), c!.kill()]);
    const harmedAt = performance.now();
    try {
      await untilAborted(lease.signal);
      expect(performance.now() - harmedAt).toBeLessThan(LEASE_MS + 2_000);
      expect(lease.isHeld()).toBe(false);
      expect(events).toContainEqual(expect.objectContaining({ type: 'lost', reason: 'notRenewed' }));

      const error = await rejection<LockUnavailableError>(locks.acquire('bonds', { waitMs: 2_000 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(
        /^Redis could not acquire "bonds": 3 of 5 nodes needed, (got \d|2 can be reached): /,
      );
      expect(error.message).toMatch(new RegExp(`127\\.0\\.0\\.1:${a!.port} not connected`));
      expect(error.message).toMatch(
        new RegExp(`127\\.0\\.0\\.1:${b!.port} (timed out after 300 ms|has not answered|not connected)`),
      );
      // It may be named behind those, as one that had not answered yet.
      const [blamed] = error.message.split(';');
      expect(blamed).not.toContain(`:${servers()[4]!.port}`);

      await Promise.all([a!.restart(), b!.resume()]);
      const again = await eventually(() => locks.acquire('stock', { waitMs: 1_000 }));
      expect(again.isHeld()).toBe(true);
      await again.release();
      await lease.release();
    } finally {
      await b!.resume();
      await c!.restart();
    }
  });

  it('at boot: the application starts, says so, and locks when they are there', async () => {
    const victims = servers().slice(0, 3);
    await Promise.all(victims.map((server) => server.kill()));
    const locks = await start({ attemptTimeoutMs: 200 });
    await expect(locks.tryAcquire('stock')).rejects.toBeInstanceOf(LockUnavailableError);
    await Promise.all(victims.map((server) => server.restart()));
    const lease = await eventually(() => locks.acquire('stock', { waitMs: 1_000 }));
    await lease.release();
  });

  it('a node that refuses is named with its reason, and no password is told', async () => {
    const password = 'pw-5ecret';
    const urls = servers().map(({ url }, index) => (index < 3 ? url.replace('://', `://nobody:${password}@`) : url));
    const locks = await start({}, urls);
    const error = await rejection<LockUnavailableError>(locks.acquire('stock', { waitMs: 500 }));
    expect(error.message).toMatch(/3 of 5 nodes needed.*WRONGPASS/);
    for (const text of [error.message, inspect(error, { depth: 9 }), inspect(locks, { depth: 9, showHidden: true })]) {
      expect(text).not.toContain(password);
    }
  });
});
