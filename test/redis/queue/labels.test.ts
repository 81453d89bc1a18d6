import { Redis } from 'ioredis';
import type { LockBusyError } from '../../../lib/kernel/api/errors.js';
import type { LockMode, LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { ACQUIRE, ROTATE } from '../../../lib/redis/script/scripts.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const LABEL = { group: 'Orders.pay', request: '7f' };
const STORED = JSON.stringify(LABEL);

const { sendCommand } = Redis.prototype;

/** What ioredis writes for its commands from now on. */
function recordWrites(): string[] {
  const written: string[] = [];
  Redis.prototype.sendCommand = function (this: Redis, command, ...rest) {
    written.push(String((command as unknown as { toWritable(): unknown }).toWritable()));
    return sendCommand.call(this, command, ...rest);
  };
  return written;
}

describe('labels in Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  afterEach(() => void (Redis.prototype.sendCommand = sendCommand));

  /** The arguments of a script that was sent, the one with this text if it is named. */
  const sent = (written: readonly string[], sha: string): string[][] =>
    written
      .filter((text) => text.includes(sha))
      .map((text) => text.split('\r\n').filter((_, index) => index > 0 && index % 2 === 0));

  it('are no byte of a call without one', async () => {
    const [{ locks, store }, other] = [await start(), await start()];
    await (await locks.acquire('a')).release(); // so that the scripts are known
    const written = recordWrites();
    const lease = await locks.acquire('a', { leaseMs: 5_000 });
    const [acquire] = sent(written, ACQUIRE.sha) as [string[]];
    const owner = acquire[6]!;
    expect(acquire.slice(0, 6)).toEqual(['evalsha', ACQUIRE.sha, '3', 'lock:{a}', 'lock:{a}:waiters', 'lock:fence']);
    expect(owner.startsWith(`${store.clientId}/`)).toBe(true);
    expect(acquire.slice(7)).toEqual(['exclusive', '5000', expect.stringMatching(/^\d+$/), '10000']);
    expect(written[0]).toMatch(/^\*11\r\n/);
    expect(await admin().get('lock:{a}')).toBe(`${owner} ${lease.fencingToken} 5000`);
    const waiting = other.locks.acquire('a');
    await eventually(async () => expect(await admin().zcard('lock:{a}:waiters')).toBe(3));
    const [place] = await admin().zrange('lock:{a}:waiters', '0', '0');
    expect(place).toMatch(/^ 1 exclusive \d{13} \d+ 10000$/);
    await lease.release();
    await (await waiting).release();
    for (const args of [...sent(written, ACQUIRE.sha), ...sent(written, ROTATE.sha)])
      expect(args.join()).not.toMatch(/{"/);
  });

  const about = async () => (await admin().hget('lock:{a}', 'about'))!.replace(/^\d+ /, '');

  it.each<[LockMode, () => Promise<unknown>]>([
    [
      'exclusive',
      () =>
        admin()
          .get('lock:{a}')
          .then((text) => text!.replace(/^\S+ \d+ \d+ /, '')),
    ],
    ['reentrant', () => about()],
    ['write', () => about()],
    [
      'read',
      () =>
        admin()
          .hgetall('lock:{a}')
          .then((fields) =>
            Object.values(fields)
              .find((text) => text.includes('{'))!
              .replace(/^\d+ \d+ \d+ \d+ /, ''),
          ),
    ],
  ])('stand in the value of the lock (%s), and leave nothing behind', async (mode, stored) => {
    const [holder, other] = [await start(), await start()];
    const options: LockOptions = { mode: mode as 'read', label: LABEL };
    const lease = await holder.locks.acquire('a', options);
    expect(await stored()).toBe(STORED);
    expect(await admin().pttl('lock:{a}')).toBeGreaterThan(0);
    const busy = await rejection<LockBusyError>(other.locks.acquire('a', { mode: 'write', waitMs: 0 }));
    expect(busy.message).toContain(`is held by ${holder.instanceId} (Orders.pay, request 7f) for `);
    const waiting = other.locks.acquire('a', { mode: 'write', label: { group: 'Orders.refund' } });
    await eventually(async () =>
      expect(await holder.locks.inspect('a')).toMatchObject({
        holders: [{ label: LABEL }],
        waiters: [{ instanceId: other.instanceId, label: { group: 'Orders.refund' } }],
      }),
    );
    expect(await holder.locks.operators.list()).toMatchObject([{ resource: 'a', holders: [{ label: LABEL }] }]);
    await lease.release();
    const next = await waiting;
    expect(await holder.locks.inspect('a')).toMatchObject({ holders: [{ label: { group: 'Orders.refund' } }] });
    await next.release();
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  const HOSTILE: [string, string | Buffer, unknown][] = [
    ['cut JSON', '{"group":"Orders', undefined],
    ['a megabyte', `{"x":"${'y'.repeat(1_000_000)}"}`, undefined],
    [
      'bytes that are no UTF-8',
      Buffer.concat([Buffer.from('{"group":"'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')]),
      { group: '\ufffd\ufffd' },
    ],
    ['a second line', '{"a":1}\nshop-9/x 1 320000000000 9999999999999 5000', { a: 1 }],
    ['a prototype', '{"__proto__":{"admin":true}}', {}],
    ['a group that is no text', '{"group":{"a":1},"n":2}', { n: 2 }],
    ['what a terminal executes', '{"group":"\u001b[2J\u202e<b>"}', undefined],
    ['what JSON escapes', '{"group":"\\u001b[2J\\u202e<b>"}', { group: '\u001b[2J\u202e<b>' }],
  ];

  describe.each(HOSTILE)('that another program has written: %s', (_, text, label) => {
    it.each(['exclusive', 'reentrant', 'read', 'write', 'queue'])(
      'are cut and escaped, and change no lock (%s)',
      async (where) => {
        const [holder, other] = [await start(), await start()];
        const mode = where === 'queue' ? 'exclusive' : (where as LockOptions['mode']);
        const lease = await holder.locks.acquire('a', { mode, leaseMs: 60_000 });
        const queued = { id: `${other.store.clientId}/w`, resource: 'a', mode: 'exclusive' } as const;
        if (where === 'queue') {
          await other.store.acquire(queued, 60_000, { sentAt: 1, maxWaiters: 9 });
          const [place] = await admin().zrange('lock:{a}:waiters', '0', '0');
          await admin().zrem('lock:{a}:waiters', place!);
          await admin().zadd('lock:{a}:waiters', 1, Buffer.concat([Buffer.from(`${place!} `), Buffer.from(text)]));
        } else if (where === 'exclusive') {
          const before = (await admin().get('lock:{a}'))!;
          await admin().set('lock:{a}', Buffer.concat([Buffer.from(`${before} `), Buffer.from(text)]), 'KEEPTTL');
        } else if (where === 'read') {
          const fields = await admin().hgetall('lock:{a}');
          const [member, value] = Object.entries(fields).find(([name]) => name.includes('/'))!;
          await admin().hset('lock:{a}', member, Buffer.concat([Buffer.from(`${value} `), Buffer.from(text)]));
        } else await admin().hset('lock:{a}', 'about', Buffer.concat([Buffer.from('60000 '), Buffer.from(text)]));
        const state = await other.locks.inspect('a');
        const shown = where === 'queue' ? state.waiters : state.holders;
        expect(shown).toHaveLength(1);
        expect(shown[0]!.label).toEqual(label);
        const busy = await rejection<LockBusyError>(other.locks.acquire('a', { mode: 'write', waitMs: 0 }));
        expect(busy.holderCount).toBe(1);
        expect(busy.holders).toHaveLength(1);
        // eslint-disable-next-line no-control-regex
        expect(busy.message).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
        expect(busy.message.length).toBeLessThan(600);
        await lease.extend(30_000);
        expect(await lease.verify()).toBe(true);
        await lease.release();
        if (where === 'queue') expect(await other.store.release(queued)).toBe(true);
        expect(await admin().keys('*')).toEqual(['lock:fence']);
      },
    );
  });

  it('are no part of a value that was not ours before either: such a key is refused, and left alone', async () => {
    const { locks } = await start();
    const texts = [
      'job/1/2 32 1{"a":1}',
      'job/1/2 32 1 a',
      'job/1/2 32',
      'job/1/2 32 {"a":1}',
      '{"a":1}',
      'job/1/2 32 1 {"a":1} x\n',
    ];
    for (const text of texts) {
      await admin().set('lock:{a}', text);
      if (text.startsWith('job/1/2 32 1 {')) continue; // with a brace it is a label, though a damaged one
      const error = await rejection(locks.acquire('a', { waitMs: 0 }));
      expect([text, error.message]).toEqual([text, expect.stringMatching(/WRONGTYPE/)]);
      expect(await admin().get('lock:{a}')).toBe(text);
    }
    await admin().del('lock:{a}');
  });
});
