import { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { GrantLog } from '../../contract/grant-log.js';
import {
  commandCounts,
  expectNothingLeft,
  type LockInstance,
  resetCounts,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { track } from '../../support/expect/tracked.js';

const LONG = { leaseMs: 60_000, waitMs: 60_000 };
const PASSWORD = 'of-a-stranger';

/**
 * A user of the same Redis with rights to its channels only: no key, no script. Records the messages, except probes of
 * waiters, whose number depends on the time only.
 */
class Stranger {
  readonly heard: { readonly channel: string; readonly message: string }[] = [];
  readonly #ears: Redis;
  readonly #mouth: Redis;

  constructor(url: string) {
    const { hostname: host, port } = new URL(url);
    const user = { host, port: Number(port), username: 'stranger', password: PASSWORD, enableReadyCheck: false };
    this.#ears = new Redis(user);
    this.#mouth = new Redis(user);
    this.#ears.on('message', (channel: string, message: string) => {
      if (!message.startsWith('probe ')) this.heard.push({ channel, message });
    });
  }

  async listen(...instances: LockInstance[]): Promise<void> {
    await this.#ears.subscribe(...instances.map(inboxOf));
  }

  /** Many times, as fast as it goes. */
  async write(instance: LockInstance, messages: readonly string[], times = 1): Promise<void> {
    const pipeline = this.#mouth.pipeline();
    for (let i = 0; i < times; i++) for (const message of messages) pipeline.publish(inboxOf(instance), message);
    await pipeline.exec();
  }

  leave(): void {
    this.#ears.disconnect();
    this.#mouth.disconnect();
  }
}

function inboxOf({ store }: LockInstance): string {
  return store.keys.inbox(store.clientId);
}

describe('a user who may use the channels, and no key', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  let stranger: Stranger;

  beforeEach(async () => {
    await admin().call(
      'ACL',
      'SETUSER',
      'stranger',
      'reset',
      'on',
      `>${PASSWORD}`,
      '&lock:*',
      '+@pubsub',
      '+@connection',
    );
    stranger = new Stranger(redis().url);
  });
  afterEach(() => stranger.leave());

  const scriptsRun = async (): Promise<number> => (await commandCounts(admin())).evalsha ?? 0;
  /** `a` holds what `b` has waited for before it, `c` waits; and the stranger has heard of it. */
  const scene = async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    await stranger.listen(a, b, c);
    const first = await b.locks.acquire('x', LONG);
    const holding = a.locks.acquire('x', LONG);
    await untilQueued(b, 'x', a);
    const waiting = track(c.locks.acquire('x', LONG));
    await untilQueued(b, 'x', a, c);
    await first.release();
    const lease = await holding;
    await eventually(() => expect(stranger.heard).toHaveLength(1));
    return { a, b, c, lease, waiting, message: stranger.heard[0]!.message };
  };

  it('receives no secret', async () => {
    const { a, lease, message } = await scene();
    const owner = (await admin().get('lock:{x}'))!.split(' ')[0]!;
    expect(owner).toMatch(new RegExp(`^${a.store.clientId}/.{12}$`));
    expect(message).not.toContain(owner.slice(a.store.clientId.length + 1));
    expect(message).toMatch(new RegExp(`^[0-9a-f]{40} ${lease.fencingToken} \\d+ x$`));
  });

  it('ends no lease by repeating a grant in the inbox of another process', async () => {
    const { a, b, c, lease, waiting, message } = await scene();
    for (const instance of [a, b, c]) await stranger.write(instance, [message], 100);
    await eventually(() => expect(stranger.heard).toHaveLength(301));
    expect(await lease.verify()).toBe(true);
    expect(waiting.state).toBe('pending');
    expect([a, b, c].map(({ locks }) => locks.stats().orphanReleases)).toEqual([0, 0, 0]);
    await lease.release();
    await eventually(() => expect(waiting.value.isHeld()).toBe(true));
    await stranger.write(a, [message]);
    await stranger.write(c, [message]);
    expect(await waiting.value.verify()).toBe(true);
    await waiting.value.release();
    stranger.leave();
    await expectNothingLeft(admin(), a, b, c);
  });

  it('costs the others no command, however much is written, and hides no grant', async () => {
    const { a, b, c, lease, waiting, message } = await scene();
    const [seal, token, sentAt] = message.split(' ') as [string, string, string];
    const lines = [
      message,
      `${seal} ${Number(token) + 32} ${sentAt} x`,
      `${seal} ${token} ${Number(sentAt) + 1} x`,
      `${'0'.repeat(40)} ${Number(token) + 32} ${sentAt} x`,
      `${seal} ${token} ${sentAt} y`,
    ];
    await resetCounts(admin());
    const from = performance.now();
    await stranger.write(c, lines, 1_000);
    const flood = stranger.write(c, lines, 1_000);
    await eventually(() => expect(stranger.heard.length).toBeGreaterThan(5_000));
    // Nothing but heartbeats and renewals: each about once a second.
    expect(await scriptsRun()).toBeLessThan(4 + (performance.now() - from) / 200);
    await lease.release();
    await flood;
    await eventually(() => expect(waiting.value.isHeld()).toBe(true));
    expect(await waiting.value.verify()).toBe(true);
    await waiting.value.release();
    stranger.leave();
    await expectNothingLeft(admin(), a, b, c);
  });

  it('cannot change a grant that the waiter has not received', async () => {
    const proxy = await TcpProxy.start(redis().port);
    await using _ = proxy;
    const [a, far] = [await start(), await start({ connection: proxy.url })];
    await stranger.listen(far);
    const lease = await a.locks.acquire('x', LONG);
    const waiting = track(far.locks.acquire('x', { ...LONG, leaseMs: 30_000 }));
    await untilQueued(a, 'x', far);
    // It does not hear, and gets no answers; the stranger counts as a listener in its place.
    const { acquire } = far.store;
    far.store.acquire = () => new Promise(() => {});
    proxy.blackHole('toServer', 'subscriber');
    proxy.cut('subscriber');
    await eventually(async () => expect(await admin().pubsub('NUMSUB', inboxOf(far))).toEqual([inboxOf(far), 1]));
    await lease.release();
    await eventually(() => expect(stranger.heard).toHaveLength(1));
    const [seal, token, sentAt] = stranger.heard[0]!.message.split(' ') as [string, string, string];
    proxy.heal();
    await eventually(async () => expect(await admin().pubsub('NUMSUB', inboxOf(far))).toEqual([inboxOf(far), 2]));
    const heard = new GrantLog(far.store);
    await stranger.write(far, [
      `${seal} ${token} ${Number(sentAt) + 1} x`,
      `${seal} ${Number(token) + 32} ${sentAt} x`,
    ]);
    await eventually(() => expect(heard.size).toBe(2));
    expect(waiting.state).toBe('pending');
    await stranger.write(far, [stranger.heard[0]!.message]); // that one is true, whoever brings it
    await eventually(() => expect(waiting.state).toBe('fulfilled'));
    expect(waiting.value.fencingToken).toBe(Number(token));
    far.store.acquire = acquire;
    await waiting.value.release();
  });
});
