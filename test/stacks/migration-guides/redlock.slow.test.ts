import { eventually } from '../../support/expect/eventually.js';
import Redlock from 'redlock';
import { connectAdmin } from '../../support/redis/admin-client.js';
import { useQuorum, useServers } from '../../support/redis/quorum-servers.js';
import { type Public, useLocks, usePods } from './pods.js';
import type { Accounts } from './redlock/after.js';
import { ALONE, crowd, sleep, toldOfLoss, whileHeld } from './stories.js';

describe('from redlock 5', () => {
  const { redis, client, ofBoth } = usePods<Public<Accounts>>({
    before: () => import('./redlock/before.js').then((it) => ({ ...it, Service: it.Accounts })),
    after: () => import('./redlock/after.js').then((it) => ({ ...it, Service: it.Accounts })),
  });
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    await Promise.all(closing.splice(0).map((close) => close()));
  });

  const theirs = (servers = [redis()]) => {
    const clients = servers.map(({ port }) => connectAdmin(port));
    closing.push(() => clients.map((it) => it.disconnect()));
    return new Redlock(clients, { retryCount: 1, retryDelay: 10, retryJitter: 0 });
  };
  const ours = useLocks(redis);

  it('one transfer at a time, however long it takes, and whatever the order of the accounts', async () => {
    const transfers = await ofBoth(([one, two]) =>
      crowd(2_300, [(work) => one.transfer('a', 'b', work), (work) => two.transfer('b', 'a', work)]),
    );
    expect(transfers).toEqual({ before: ALONE, after: ALONE });
  });

  it('the report is built, unless another process builds it', async () => {
    const built = await ofBoth(async ([one, two]) => {
      const build = (): Promise<boolean> => two.tryReport(async () => {});
      return [await whileHeld((work) => one.tryReport(work), build), await build()];
    });
    expect(built).toEqual({ before: [false, true], after: [false, true] });
  });

  it('the signal of a lost lock aborts', async () => {
    const told = await ofBoth(([one]) =>
      toldOfLoss(
        15_000,
        (work) => one.transfer('a', 'b', work),
        () => client().flushall(),
      ),
    );
    expect(told).toEqual({ before: expect.any(Number), after: expect.any(Number) });
  });

  it('theirs is silent while Redis hangs, ours reports that the lease has ended', async () => {
    const begun: string[] = [];
    const told: string[] = [];
    const until = async (name: string, signal: AbortSignal): Promise<void> => {
      begun.push(name);
      signal.addEventListener('abort', () => told.push(name));
      await sleep(2_500); // four leases
    };
    const locks = await ours();
    const both = [
      theirs().using(['a'], 700, (signal) => until('theirs', signal)),
      locks.using('a', { leaseMs: 700 }, ({ signal }) => until('ours', signal)),
    ];
    await eventually(() => expect(begun).toHaveLength(2));
    await redis().pause();
    await sleep(2_000);
    const toldMeanwhile = [...told];
    await redis().resume();
    await Promise.allSettled(both);
    expect(toldMeanwhile).toEqual(['ours']);
  });

  describe('with several servers', () => {
    const servers = useServers(3);
    const quorum = useQuorum(servers);

    it('both continue without one of three', async () => {
      const redlock = theirs(servers());
      const locks = await quorum();
      await servers()[2]!.kill();
      await expect(redlock.using(['a'], 5_000, async () => 'theirs')).resolves.toBe('theirs');
      await expect(locks.using('a', () => 'ours')).resolves.toBe('ours');
      await servers()[2]!.restart();
    });
  });
});
