import { eventually } from '../../support/expect/eventually.js';
import { useQuorum, useServers } from '../../support/redis/quorum-servers.js';

/** Longer than a busy machine takes to answer. */
const PATIENT = { nodeTimeoutMs: 2_000, leaseMs: 60_000, attemptTimeoutMs: 10_000 };
const WITHIN = { timeoutMs: 1_000 };

describe('locks.health() on a quorum of five', () => {
  const servers = useServers(5);
  const start = useQuorum(servers);

  it('is up with five, degraded with three, down with two, and up again', async () => {
    const locks = await start(PATIENT);
    expect(await locks.health(WITHIN)).toMatchObject({
      status: 'up',
      topology: 'quorum',
      servers: { total: 5, needed: 3, up: 5 },
      problems: [],
    });
    const [, b, c, , e] = servers();
    await b!.kill();
    await e!.pause();
    try {
      await eventually(async () =>
        expect(await locks.health(WITHIN)).toMatchObject({
          status: 'degraded',
          roundTripMs: expect.any(Number),
          servers: { total: 5, needed: 3, up: 3 },
          // By their place in the option.
          problems: [
            { code: 'ECONNREFUSED', server: 2 },
            { code: 'TIMEOUT', server: 5 },
          ],
        }),
      );
      await (await locks.acquire('stock')).release();
      await c!.kill();
      await eventually(async () => {
        const health = await locks.health(WITHIN);
        expect(health).toMatchObject({ status: 'down', roundTripMs: null, servers: { up: 2 } });
        expect(JSON.stringify(health)).not.toMatch(/127\.0\.0\.1|localhost/);
      });
    } finally {
      await e!.resume();
      await Promise.all([b!.restart(), c!.restart()]);
    }
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] }));
  });

  it('counts no node that answers later than nodeTimeoutMs', async () => {
    const locks = await start({ ...PATIENT, nodeTimeoutMs: 1_000 });
    await eventually(async () => expect(await locks.health(WITHIN)).toMatchObject({ status: 'up' }));
    const [a] = servers();
    await a!.pause();
    const health = locks.health({ timeoutMs: 20_000 });
    const later = new Promise((resolve) => setTimeout(resolve, 2_000));
    await later;
    await a!.resume();
    expect(await health).toMatchObject({ status: 'degraded', problems: [{ code: 'SLOW', server: 1 }] });
  });
});
