import { Redis } from 'ioredis';
import { createOwnerId } from '../../../lib/kernel/store/ask.js';
import { SystemRandom } from '../../../lib/kernel/util/clock.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { ASKING, ScriptRunner } from '../../../lib/redis/script/script-runner.js';
import * as everyScript from '../../../lib/redis/script/scripts.js';
import { Instruments } from '../../support/expect/instruments.js';
import { eventually } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const SCRIPTS = Object.values(everyScript);

describe('what traces and other instruments see of a command', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  let instruments: Instruments;
  beforeEach(() => {
    instruments = new Instruments();
    instruments.begin();
  });
  afterEach(() => instruments.end());

  const isCold = async (): Promise<unknown> => admin().script('FLUSH');

  it.each(['cold', 'known', 'asking'])('is no argument of any script: %s', async (how) => {
    expect(SCRIPTS.length).toBeGreaterThan(15);
    const client = new Redis(redis().url);
    const sender = how === 'asking' ? ASKING : new ScriptRunner();
    for (const script of SCRIPTS) {
      if (how === 'cold') await isCold();
      // Most of them fail for that; what they are sent with is the same.
      const keys = ['{Pst-k}', '{Pst-k}:1', '{Pst-k}:2'];
      const args = Array.from({ length: 9 }, (_, index) => `Pst-${index}`);
      // The probe reports which commands were refused: names from our own list.
      if (script.name === 'probe') args[3] = 'get';
      const call = { script, keys, args, read: (reply: unknown) => reply };
      await sender.send<unknown>(client, call, async (error) => instruments.see('an error', error));
    }
    expect(instruments.names).toContain(how === 'known' ? 'evalsha' : 'eval');
    expect(instruments.placesOf('Pst-')).toEqual([]);
    client.disconnect();
  });

  it('is no owner of a claim that a node of a quorum keeps', async () => {
    const [{ store }, other] = [await start(), await start()];
    const claims = [store, other.store].map((each) => new RedisJobStore(each));
    const newOwnerId = (clientId: string): string => createOwnerId(clientId, new SystemRandom());
    const [owner, rival] = [newOwnerId(store.clientId), newOwnerId(other.store.clientId)];
    const tick = { resource: 'cron:report', tick: 'now' };
    const [mine, its] = [`${owner} runs`, `${rival} reruns`];
    const replies = [
      await claims[0]!.exchange(tick, { owner, to: mine, claimTtlMs: 60_000 }),
      await claims[0]!.exchange(tick, { owner }),
      await claims[1]!.exchange(tick, { owner: rival, to: its, claimTtlMs: 60_000 }),
      await claims[1]!.exchange(tick, { owner: rival, to: its, claimTtlMs: 60_000, force: true }),
    ];
    const secrets = [owner, rival].map((each) => each.slice(each.lastIndexOf('/') + 1));
    for (const secret of secrets) expect(instruments.placesOf(secret)).toEqual([]);
    // Each knows its own, and that the other one's run was granted.
    expect(replies).toEqual([mine, mine, expect.stringMatching(/^[0-9a-f]{40} runs$/), its]);
  });

  it.each([false, true])('is no owner and no resource of an application (durable: %s)', async (durable) => {
    const durability = durable ? { durability: { replicas: 0 as number, timeoutMs: 50 } } : {};
    const { locks, store } = await start(durability);
    const other = await start(durability);
    const owners: string[] = [];
    // Without naming it: this look is seen as well.
    const ownerOfLock = async (): Promise<string> => {
      instruments.end();
      const owner = (await admin().get('lock:{Classified}'))!.split(' ')[0]!;
      instruments.begin();
      return owner;
    };
    const ownerNow = async (): Promise<void> => {
      owners.push(await ownerOfLock());
    };
    const steps = [
      async () => {
        const lease = await locks.acquire('Classified', { leaseMs: 20_000 });
        await ownerNow();
        await isCold();
        await lease.extend(30_000);
        await isCold();
        const waiting = other.locks.acquire('Classified', { waitMs: 20_000 });
        await eventually(async () => expect((await locks.inspect('Classified')).waiters).toHaveLength(1));
        await isCold();
        await lease.release();
        const next = await waiting;
        await ownerNow();
        await isCold();
        await next.release();
      },
    ];
    for (const step of steps) {
      await isCold();
      await step();
    }
    expect(owners).toHaveLength(2);
    expect(owners.every((owner) => owner.includes(store.instanceId) || owner.includes(other.instanceId))).toBe(true);
    const secrets = owners.map((owner) => owner.slice(owner.lastIndexOf('/') + 1));
    for (const secret of secrets) expect(instruments.placesOf(secret)).toEqual([]);
    // Messages about locks name the resource: that is what they are for.
    expect(instruments.placesOf('Classified').filter((place) => !place.includes(' nestjs-redis-lock:'))).toEqual([]);
  });
});
