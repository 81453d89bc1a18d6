import { LockError } from '../../../lib/kernel/api/errors.js';
import { eventually } from '../../support/expect/eventually.js';
import { fitting, HOSTILE_TEXTS, unsafeIn } from '../../support/expect/hostile-texts.js';
import { type LockInstance, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const TEXTS = Object.values(HOSTILE_TEXTS);
const LONG = 'x'.repeat(100_000);
/** Names of the neighbour, the first part of an owner id. */
const NAMES = [...TEXTS, LONG, ''];
const LABELS = [
  ...TEXTS.map((text) => JSON.stringify({ group: fitting(text, 40), site: fitting(text, 20), [fitting(text, 20)]: 1 })),
  ...TEXTS.map((text) => `{"group":"${text}"}`),
  `{"group":"${LONG}"}`,
  '{"group":',
  '{"__proto__":{"group":"a"},"constructor":{"prototype":1},"toString":1,"valueOf":"x"}',
  '{"group":{"toString":1},"site":[1],"traceparent":null}',
  `{"a":${'['.repeat(120)}${']'.repeat(120)}}`,
];

describe('a neighbour that writes hostile texts into Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** Calls each function that reports holders or waiters: it resolves, or rejects with an error of ours. */
  async function look({ locks, events }: LockInstance, written: unknown, waitMs = 0): Promise<void> {
    const shown: string[] = [];
    const failed = (error: unknown): undefined => {
      if (!(error instanceof LockError)) throw error;
      shown.push(error.message);
      return undefined;
    };
    const { operators } = locks;
    const [state, , explanation] = await Promise.all([
      operators.inspect('a').catch(failed),
      operators.list().catch(failed),
      operators.explain('a').catch(failed),
    ]);
    if (explanation) shown.push(...explanation.sentences, ...explanation.text.split('\n'));
    expect(await locks.acquire('a', { waitMs, mode: 'write' }).catch(failed)).toBeUndefined();
    expect(shown.length).toBeGreaterThanOrEqual(2);
    for (const text of shown) {
      expect({ written, unsafe: unsafeIn(text) }).toEqual({ written, unsafe: undefined });
      expect(text.length).toBeLessThan(2_000);
    }
    const labels = [
      state?.holders,
      state?.waiters,
      events.flatMap((event) => ('holders' in event ? event.holders : [])),
    ];
    for (const { label } of labels.flatMap((each) => [...(each ?? [])])) {
      if (label === undefined) continue;
      expect(Buffer.byteLength(JSON.stringify(label))).toBeLessThanOrEqual(300);
      expect(Object.hasOwn(label, '__proto__')).toBe(false);
      expect(Object.getPrototypeOf(label)).toBe(Object.getPrototypeOf(JSON.parse('{}')));
    }
  }

  it('as the name or the label of a holder: it is shown escaped, or not at all', async () => {
    const [holder, other] = [await start(), await start()];
    const lease = await holder.locks.acquire('a', { leaseMs: 60_000 });
    const owner = (await admin().get('lock:{a}'))!.split(' ')[0]!;
    const token = lease.fencingToken;
    for (const name of NAMES) {
      await admin().set('lock:{a}', `${name}/x/y ${token} 60000`, 'PX', 60_000);
      await look(other, name, 20);
    }
    for (const label of LABELS) {
      await admin().set('lock:{a}', `${owner} ${token} 60000 ${label}`, 'PX', 60_000);
      await look(other, label, 20);
    }
    for (const [index, name] of NAMES.entries()) {
      await admin().del('lock:{a}');
      const id = `${name}/x/y`;
      const label = LABELS[index]!;
      await admin().hset('lock:{a}', { mode: 'write', owner: id, token, depth: index, about: `60000 ${label}` });
      await admin().pexpire('lock:{a}', 60_000);
      await look(other, name);
    }
    expect(await admin().del('lock:{a}')).toBe(1);
  });

  it('as the name or the label of a waiter: it is shown escaped, or not at all', async () => {
    const [holder, other, waiter] = [await start(), await start(), await start()];
    const lease = await holder.locks.acquire('a', { leaseMs: 60_000, watchdog: false });
    const queued = { id: `${waiter.store.clientId}/w`, resource: 'a', mode: 'exclusive' } as const;
    await waiter.store.acquire(queued, 60_000, { sentAt: 1, maxWaiters: 9 });
    const places = await admin().zrange('lock:{a}:waiters', '0', '-1', 'WITHSCORES');
    const isData = (member: string) => /^ \d+ exclusive /.test(member);
    expect(places.filter(isData)).toHaveLength(1);
    for (const [index, label] of LABELS.entries()) {
      const name = NAMES[index % NAMES.length]!;
      await admin().del('lock:{a}:waiters');
      for (let at = 0; at < places.length; at += 2) {
        const member = places[at]!.replaceAll(waiter.store.clientId, () => `${name}/x`);
        await admin().zadd('lock:{a}:waiters', places[at + 1]!, isData(member) ? `${member} ${label}` : member);
      }
      await look(other, [name, label]);
    }
    await admin().del('lock:{a}:waiters');
    await lease.release();
    await eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));
  });

  describe('as a lock that no process of ours can have written', () => {
    const FAR = '9'.repeat(400);

    it.each([
      ['shared, and has an owner', { mode: 'read', owner: 'neighbour/x/y', token: '32' }],
      ['a semaphore, and has an owner', { mode: 'semaphore', owner: 'neighbour/x/y', token: '32' }],
      ['never free', { mode: 'semaphore', used: '1', soonest: FAR, total: '1', resized: '0' }],
    ])('that is %s: it is refused as that of another program', async (_what, written) => {
      const { locks } = await start();
      await admin().hset('lock:{a}', written);
      const permit = () => locks.semaphore('a', { permits: 1 }).acquire();
      for (const call of [() => locks.acquire('a'), () => locks.acquire('a', { mode: 'read' }), permit])
        await expect(call()).rejects.toMatchObject({
          code: 'LOCK_UNAVAILABLE',
          cause: { failure: 'refused', message: expect.stringMatching(/^WRONGTYPE/) },
        });
      expect(await admin().hgetall('lock:{a}')).toEqual(written);
    });

    it('whose reader reads for ever: it is no reader, and is not looked at again and again', async () => {
      const { locks } = await start();
      await admin().hset('lock:{a}', { mode: 'read', used: '1', soonest: '1', 'neighbour/x/y': `1 32 ${FAR}` });
      const lease = await locks.acquire('a', { waitMs: 500 });
      await lease.release();
      expect(await admin().exists('lock:{a}')).toBe(0);
    });
  });
});
