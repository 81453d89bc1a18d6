import { LockUnavailableError } from '../../../../lib/kernel/api/errors.js';
import { replyCode } from '../../../../lib/redis/script/failures.js';
import { CriticalSections } from '../../../support/expect/critical-sections.js';
import { rejection } from '../../../support/expect/eventually.js';
import { untilQueued, useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { SeededRandom } from '../../../support/world/seeded-random.js';
import { HostileKeys, QUEUE_AND_FENCE, SCRIPT_NAMES, type ScriptName } from './hostile-keys.js';
import { OWNERS } from './hostile-texts.js';

const ROUNDS = 200;
const SOON = '9999999999999';

describe('a neighbour writes anything into the keys of the locks', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('no script fails except with WRONGTYPE, and a release never does', async () => {
    const begins: ScriptName[] = ['ACQUIRE', 'ACQUIRE', 'WATCH', 'CLAIM_TICK'];
    let run = 0;
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const hostile = new HostileKeys(admin(), new SeededRandom(seed));
      await admin().flushall();
      for (let step = 0; step < 12; step++) {
        if (step % 3 === 2) await hostile.write();
        const name = hostile.any(step < 2 ? begins : SCRIPT_NAMES);
        const error = await hostile.run(name, hostile.argumentsOf(name)).then(
          () => '',
          ({ message }: Error) => message,
        );
        run++;
        if (error === '' || (replyCode(error) === 'WRONGTYPE' && name !== 'RELEASE')) continue;
        throw new Error(`seed ${seed}: ${name}: ${error}\n${hostile.trail.join('\n')}`);
      }
    }
    expect(run).toBe(ROUNDS * 12);
  });

  it('beside a lock, it takes the lock from no holder', async () => {
    const names: ScriptName[] = [
      'ACQUIRE',
      'ACQUIRE',
      'KEEP',
      'RELEASE',
      'ROTATE',
      'RENEW',
      'RENEW_EXACTLY',
      'WATCH',
      'RETAIN',
      'RESIZE',
      'INSPECT',
    ];
    const ending: ScriptName[] = ['RELEASE', 'ROTATE', 'RETAIN'];
    let held = 0;
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const hostile = new HostileKeys(admin(), new SeededRandom(seed), ['exclusive']);
      await admin().flushall();
      let holder: string | undefined;
      for (let step = 0; step < 15; step++) {
        if (step % 3 === 2) await hostile.write(QUEUE_AND_FENCE);
        const name = hostile.any(names);
        const call = hostile.argumentsOf(name, 60_000);
        await hostile.run(name, call).catch(() => undefined);
        const holders: string[] = [];
        for (const owner of OWNERS) if ((await hostile.verify(owner)) === 1) holders.push(owner);
        const mayEnd = ending.includes(name) && call.args[0] === holder;
        if (holders.length > 1 || (holder !== undefined && !mayEnd && holders[0] !== holder))
          throw new Error(`seed ${seed}: ${holder} lost it to ${holders.join()}\n${hostile.trail.join('\n')}`);
        holder = holders[0];
        if (holder !== undefined) held++;
      }
    }
    expect(held).toBeGreaterThan(ROUNDS);
  });

  describe.each<[string, (string | number)[]]>([
    ['a place without its owner', [0, ` 0 exclusive ${SOON} 0 30000`]],
    ['places without their owners', [0, ` 0 exclusive ${SOON} 0 30000`, 0.5, ` 1 read ${SOON} 0 30000`]],
    ['a place that is over, without its owner', [0, ' 0 exclusive 1 0 30000']],
    ['a place whose owner has no slash', [0, ` 0 exclusive ${SOON} 0 30000`, 0, 'mine', SOON, '#0']],
    ['a place of an unknown mode', [0, ` 0 mine ${SOON} 0 30000`, 0, 'a/b/c', SOON, '#0']],
    ['a place for no permits', [0, ` 0 semaphore:0:3:0 ${SOON} 0 30000`, 0, 'a/b/c', SOON, '#0']],
    ['a place for permits that are no numbers', [0, ` 0 semaphore:x ${SOON} 0 30000`, 0, 'a/b/c', SOON, '#0']],
    ['a place that ends beyond all time', [0, ` 0 exclusive ${'9'.repeat(40)} 0 30000`, 0, 'a/b/c', SOON, '#0']],
    ['half a place', [0, ' 0 exclusive', 0, 'a/b/c', SOON, '#0']],
    ['members of any kind', [0, 'mine', 0.1, '', 0.2, '#x', '-inf', '{}']],
    ['a watcher where the places are', [0, '!mine']],
  ])('%s before the waiters', (_what, members) => {
    it('is dropped by the release, which grants the waiters in their order', async () => {
      const [holder, first, second] = [await start(), await start(), await start()];
      const sections = new CriticalSections();
      const lease = await holder.locks.acquire('x');
      const calls = [sections.call(first)];
      await untilQueued(holder, 'x', first);
      calls.push(sections.call(second));
      await untilQueued(holder, 'x', first, second);
      await admin().zadd('lock:{x}:waiters', ...members);
      await lease.release();
      await Promise.all(calls);
      sections.expectSound(2);
      expect(sections.order(first, second)).toEqual([0, 1]);
      await (await second.locks.acquire('x', { waitMs: 0 })).release();
    });
  });

  it.each<[string, (string | number)[]]>([
    ['a member behind them', [5, 'mine']],
    ['the end of a place that is not there', [SOON, '#77']],
    ['a place without an owner', [7, ` 7 exclusive ${SOON} 0 30000`]],
    ['many', Array.from({ length: 90 }, (_, index) => [index / 7, `mine ${index}`]).flat()],
  ])('another caller can queue behind the waiters, whatever is written between them: %s', async (_what, members) => {
    const [holder, first, second] = [await start(), await start(), await start()];
    const sections = new CriticalSections();
    const lease = await holder.locks.acquire('x');
    const calls = [sections.call(first)];
    await untilQueued(holder, 'x', first);
    await admin().zadd('lock:{x}:waiters', ...members);
    calls.push(sections.call(second));
    await untilQueued(holder, 'x', first, second);
    await lease.release();
    await Promise.all(calls);
    sections.expectSound(2);
    expect(sections.order(first, second)).toEqual([0, 1]);
    expect(await admin().exists('lock:{x}:waiters')).toBe(0);
  });

  it('a fence of another program fails no release: the waiter gets the reason', async () => {
    const [holder, waiter] = [await start({ defaults: { leaseMs: 900 } }), await start({ defaults: { leaseMs: 900 } })];
    const lease = await holder.locks.acquire('x');
    const refused = rejection<LockUnavailableError>(waiter.locks.acquire('x', { waitMs: 60_000 }));
    await untilQueued(holder, 'x', waiter);
    await admin().set('lock:fence', 'mine');
    await lease.release();
    expect(await admin().exists('lock:{x}')).toBe(0);
    const error = await refused;
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('WRONGTYPE');
    expect(await admin().get('lock:fence')).toBe('mine');
  });

  it.each([
    { mode: 'read', used: 'many', soonest: SOON },
    { mode: 'read', used: '1', soonest: 'later' },
    { mode: 'semaphore', used: '1', soonest: SOON },
    { mode: 'semaphore', used: '1', soonest: SOON, total: 'x' },
    { mode: 'mine', used: '1', soonest: SOON },
  ])('a hash that no lock can be is not one: %j', async (fields) => {
    const { locks } = await start();
    const lease = await locks.acquire('x', { mode: 'read' });
    await admin().multi().del('lock:{x}').hset('lock:{x}', fields).exec();
    const error = await rejection<LockUnavailableError>(locks.acquire('x', { mode: 'write', waitMs: 60_000 }));
    expect(error.message).toContain('WRONGTYPE');
    expect(await lease.verify()).toBe(false);
    await lease.release();
    expect(await admin().hgetall('lock:{x}')).toEqual(fields);
  });
});
