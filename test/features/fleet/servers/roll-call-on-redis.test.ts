import { Redis } from 'ioredis';
import { LockUnavailableError } from '../../../../lib/kernel/api/errors.js';
import { eventually, rejection } from '../../../support/expect/eventually.js';
import {
  commandCounts,
  keysWithTtl,
  resetCounts,
  useAdmin,
  useInstances,
} from '../../../support/redis/lock-instances.js';
import { documentedUser } from '../../../support/redis/lock-user.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const CHANNEL = 'lock:roll:0';

describe('a roll call on Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const clients: Redis[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.disconnect()));

  const connect = (options = {}): Redis => {
    const client = new Redis(redis().url, { disconnectTimeout: 0, ...options });
    clients.push(client);
    return client;
  };
  /** Another program that listens to the questions, and that Redis counts as one more. */
  const listen = async (heard: (nonce: string) => void = () => {}): Promise<string[]> => {
    const messages: string[] = [];
    const listener = connect();
    listener.on('message', (_channel: string, message: string) => {
      messages.push(message);
      heard(message.split(' ')[1]!);
    });
    await listener.subscribe(CHANNEL);
    return messages;
  };
  const idsOf = (fleet: { readonly instances: readonly { readonly instanceId: string }[] }) =>
    fleet.instances.map(({ instanceId }) => instanceId);

  it('leaves two keys for five seconds, without a secret in them', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('stock');
    const waiting = b.locks.acquire('stock');
    await eventually(async () => expect((await a.locks.inspect('stock')).waiters).toHaveLength(1));
    const fleet = await a.locks.fleet();
    expect(fleet).toMatchObject({ completeness: 'complete', asked: 2 });
    const nonce = await admin().hget('lock:roll', 'nonce');
    const ttls = Object.entries(await keysWithTtl(admin())).filter(([key]) => key.startsWith('lock:roll'));
    expect(ttls.map(([key]) => key)).toEqual(['lock:roll', `lock:roll:${nonce}`]);
    for (const [, ttl] of ttls) expect(ttl > 0 && ttl <= 5_000).toBe(true);

    const texts = JSON.stringify([fleet, await admin().hgetall(`lock:roll:${nonce}`)]);
    const queued: string[] = await admin().zrange('lock:{stock}:waiters', '0', '-1');
    const words = [await admin().get('lock:{stock}'), ...queued].join(' ').split(' ');
    const owners = words.filter((word) => [a, b].some(({ store }) => word.startsWith(`${store.clientId}/`)));
    expect(owners).toHaveLength(2);
    for (const owner of owners) {
      expect(texts).not.toContain(owner.slice(owner.lastIndexOf('/') + 1));
    }
    await lease.release();
    await (await waiting).release();
  });

  it('lists an instance that may not subscribe by the report that it leaves, until it may', async () => {
    const { rules } = documentedUser();
    const password = rules.find((rule) => rule.startsWith('>'))!.slice(1);
    await admin().call('ACL', 'SETUSER', 'mute', 'reset', ...rules.filter((rule) => !rule.startsWith('&')));
    const mute = await start({ connection: redis().url.replace('://', `://mute:${password}@`) });
    const other = await start();
    await mute.locks.acquire('order:7');
    const ofMute = async () =>
      (await other.locks.fleet()).instances.find((each) => each.instanceId === mute.instanceId);
    await eventually(async () => {
      const fleet = await other.locks.fleet();
      expect(fleet).toMatchObject({ completeness: 'complete', asked: 2, silent: [], unlisted: [] });
      expect(fleet.instances).toHaveLength(2);
      expect((await ofMute())!.held).toMatchObject([{ resource: 'order:7' }]);
      expect(fleet.findings).toMatchObject([{ kind: 'instanceDeaf', culprit: { instanceId: mute.instanceId } }]);
    }, 6_000);
    const heldMs = (await ofMute())!.held[0]!.heldMs;
    await eventually(async () => expect((await ofMute())!.held[0]!.heldMs).toBeGreaterThan(heldMs + 2_500), 8_000);

    // It hears roll calls as soon as it may.
    await admin().call('ACL', 'SETUSER', 'mute', 'allchannels');
    await eventually(async () => {
      expect(await other.locks.fleet()).toMatchObject({ asked: 2, findings: [] });
      expect(await admin().hlen('lock:roll:unasked')).toBe(0);
    }, 25_000);
  });

  it('asks the instances of its database and its prefix, and no others', async () => {
    const place = { connection: `${redis().url}/3` };
    const [a, b] = [await start({ ...place, keyPrefix: 'shop' }), await start({ ...place, keyPrefix: 'shop' })];
    await start({ keyPrefix: 'shop' });
    await start({ ...place });
    const fleet = await a.locks.fleet();
    expect(fleet).toMatchObject({ completeness: 'complete', asked: 2, silent: [] });
    expect(idsOf(fleet)).toEqual([a.instanceId, b.instanceId].sort());
  });

  it('shares one request a second among all callers, in any process', async () => {
    const instances = [await start(), await start(), await start()];
    const messages = await listen();
    const askAll = () =>
      Promise.all(Array.from({ length: 20 }, (_, index) => instances[index % 3]!.locks.fleet({ timeoutMs: 100 })));
    const fleets = await askAll();
    expect(new Set(fleets.map(({ askedAt }) => askedAt)).size).toBe(1);
    for (const fleet of fleets) expect(fleet.instances).toHaveLength(3);
    expect(messages).toHaveLength(1);
    await eventually(async () => expect(await admin().pttl('lock:roll')).toBeLessThan(4_000));
    await askAll();
    expect(messages).toHaveLength(2);
  });

  it('waits for its turn if it is about something else, and lists only that', async () => {
    const [a, b] = [await start(), await start()];
    await b.locks.acquire('order:1', { group: 'Orders.pay' });
    await b.locks.acquire('stock:1');
    const [all, orders, paid] = await Promise.all([
      a.locks.fleet(),
      a.locks.fleet({ prefix: 'order:' }),
      b.locks.fleet({ group: 'Orders.pay' }),
    ]);
    const held = (fleet: typeof all) => fleet.instances.flatMap((each) => each.held.map(({ resource }) => resource));
    expect([held(all), held(orders), held(paid)]).toEqual([['order:1', 'stock:1'], ['order:1'], ['order:1']]);
    expect(new Set([all, orders, paid].map(({ askedAt }) => askedAt)).size).toBe(3);
  });

  it('counts answers that are not of this version, and shows none of their content', async () => {
    const { locks, store } = await start();
    const victim = store.clientId.slice(0, store.clientId.lastIndexOf('/'));
    const [answer] = await (async () => {
      await locks.fleet();
      const nonce = await admin().hget('lock:roll', 'nonce');
      return Object.values(await admin().hgetall(`lock:roll:${nonce}`));
    })();
    await eventually(async () => expect(await admin().exists('lock:roll')).toBe(0));
    const real = JSON.parse(answer!) as Record<string, unknown>;
    const forged = [
      'no JSON',
      '{}',
      'null',
      '[]',
      JSON.stringify({ ...real, v: 2 }),
      JSON.stringify({ ...real, k: [['stock', 9, 1, 1, 1, 'g', 1]] }),
      JSON.stringify({ ...real, k: [[7, 0, 1, 1, 1, 'g', 1]] }),
      JSON.stringify({ ...real, w: [{ resource: 'stock' }] }),
      JSON.stringify({ ...real, u: -1 }),
      JSON.stringify({ ...real, h: 'x'.repeat(5_000) }),
      // The answer of another instance, under another client.
      answer!,
    ];
    await listen((nonce) => {
      for (const [index, text] of forged.entries()) {
        const client = text === answer ? 'other/1' : `${victim}/${index}`;
        void admin().hset(`lock:roll:${nonce}`, client, text);
      }
    });
    const fleet = await locks.fleet({ timeoutMs: 1_000 });
    expect(fleet).toMatchObject({ completeness: 'partial', asked: 2, unreadable: forged.length });
    expect(fleet.instances).toHaveLength(1);
    expect(fleet.instances[0]!.held).toEqual([]);
  });

  it('ignores a neighbour that may publish, and not read the keys', async () => {
    const [a] = [await start(), await start()];
    await resetCounts(admin());
    const from = performance.now();
    const flood = connect().pipeline();
    for (let index = 0; index < 300; index++) {
      flood.publish(CHANNEL, `roll ${String(index).padStart(22, 'x')} `);
      flood.publish(CHANNEL, `roll ${'y'.repeat(3_000)}`);
    }
    await flood.exec();
    await a.locks.inspect('stock');
    expect(Object.keys(await keysWithTtl(admin())).filter((key) => key.includes('roll'))).toEqual([]);
    // Each of the two looks four times a second, whatever was published. A new script is sent twice.
    const { evalsha = 0, eval: texts = 0 } = await commandCounts(admin());
    const seconds = (performance.now() - from) / 1_000;
    expect(evalsha + texts).toBeLessThan(2 * 4 * seconds + 20);
    await eventually(async () => expect((await a.locks.fleet()).completeness).toBe('complete'));
  });

  it('names the missing right, if its user may not publish to all', async () => {
    const rights = ['~lock:*', '&lock:inbox:*', '+@all'];
    await admin().call('ACL', 'SETUSER', 'narrow', 'reset', 'on', '>secret', 'resetchannels', ...rights);
    const { locks, store } = await start({ connection: redis().url.replace('://', '://narrow:secret@') });
    await (await locks.acquire('stock')).release();
    const error = await rejection(locks.fleet());
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect((error as Error).message).toMatch(/NOPERM|can't publish to the channel/);
    expect(await store.missingRights()).toMatchObject([{ needed: [], helpful: ['&lock:*'] }]);
    // Its own report, because it may not listen to all either.
    await eventually(async () => expect(await admin().keys('lock:roll*')).toEqual(['lock:roll:unasked']));
  });

  it('rejects if Redis dies after the request', async () => {
    const { locks } = await start({ defaults: { attemptTimeoutMs: 500 } });
    const messages = await listen();
    const asked = rejection(locks.fleet({ timeoutMs: 4_000 }));
    await eventually(() => expect(messages).toHaveLength(1));
    await redis().kill();
    expect(await asked).toBeInstanceOf(LockUnavailableError);
    // It would be counted again, and does not answer.
    clients.splice(0).forEach((client) => client.disconnect());
    await redis().restart();
    await eventually(async () => expect((await locks.fleet()).completeness).toBe('complete'));
  });
});
