import { Cluster } from 'ioredis';
import type { ForeignClaim } from '../../lib/core/api/foreign-lock.js';
import { InvalidLockOptionsError } from '../../lib/core/api/errors.js';
import { LOCK_DEFAULTS } from '../../lib/core/api/lock-options.js';
import { murlock, redisSemaphore, redisson, redlock, setNx } from '../../lib/migration.js';
import { QuorumClaim } from '../../lib/migration/quorum-claim.js';
import { track } from '../support/expect/tracked.js';
import { FakeClock, settle } from '../support/world/fake-clock.js';
import { FakeForeignServer } from '../support/world/fake-foreign-lock.js';

const NEVER = new AbortController().signal;

describe('a claim to several servers', () => {
  const clock = new FakeClock();
  let servers: FakeForeignServer[];
  let claim: QuorumClaim;

  beforeEach(() => {
    servers = [1, 2, 3].map(() => new FakeForeignServer(clock));
    claim = new QuorumClaim(
      servers.map((server): ForeignClaim => ({
        tryAcquire: (ms) => server.acquire('x', 'ours', ms),
        renew: (ms) => server.renew('x', 'ours', ms),
        release: (ms) => server.release('x', 'ours', ms),
      })),
    );
  });

  const owners = () => servers.map((server) => server.ownerOf('x'));

  it('is held where a majority is, though one server hangs or fails', async () => {
    servers[0]!.troubles.acquire.push({ until: new Promise(() => {}) });
    expect(await claim.tryAcquire(1_000, NEVER)).toEqual({ status: 'held' });
    servers[1]!.troubles.renew.push({ failure: 'unknown' });
    servers[0]!.put('x', 'ours', 1_000);
    expect(await claim.renew(1_000)).toBe(true);
    expect(await claim.release(0)).toBe(true);
    await settle();
    expect(owners()).toEqual([undefined, undefined, undefined]);
  });

  it('is busy where a majority is, and leaves nothing on the others', async () => {
    servers[0]!.put('x', 'theirs', 700);
    servers[1]!.put('x', 'theirs', 900);
    expect(await claim.tryAcquire(1_000, NEVER)).toEqual({ status: 'busy', ttlMs: 700 });
    await settle();
    expect(owners()).toEqual(['theirs', 'theirs', undefined]);
  });

  it('releases a vote that comes after it was given up', async () => {
    let answer!: () => void;
    servers[2]!.troubles.acquire.push({ until: new Promise((resolve) => (answer = resolve)) });
    servers[0]!.put('x', 'theirs', 700);
    servers[1]!.put('x', 'theirs', 900);
    expect((await claim.tryAcquire(1_000, NEVER)).status).toBe('busy');
    answer();
    await settle();
    expect(servers[2]!.ownerOf('x')).toBeUndefined();
  });

  it('is lost where a majority has it no more', async () => {
    await claim.tryAcquire(1_000, NEVER);
    servers[0]!.delete('x');
    expect(await claim.renew(1_000)).toBe(true);
    servers[1]!.delete('x');
    expect(await claim.renew(1_000)).toBe(false);
  });

  it.each([
    ['notExecuted', ['notExecuted', 'notExecuted', 'notExecuted']],
    ['unknown', ['notExecuted', 'unknown', 'notExecuted']],
    ['refused', ['refused', 'refused', 'refused']],
  ] as const)('fails as %s where no majority can be asked: %j', async (failure, failures) => {
    failures.forEach((each, index) => servers[index]!.troubles.acquire.push({ failure: each }));
    await expect(claim.tryAcquire(1_000, NEVER)).rejects.toMatchObject({ failure });
  });

  it('may have been executed where one server has', async () => {
    servers[1]!.troubles.acquire.push({ failure: 'notExecuted' });
    servers[2]!.troubles.acquire.push({ failure: 'notExecuted' });
    const attempt = track(claim.tryAcquire(1_000, NEVER));
    await settle();
    expect(attempt.error).toMatchObject({ failure: 'unknown' });
  });

  it('keeps what a later attempt was granted when an earlier one ends in vain', async () => {
    let answer!: () => void;
    servers[0]!.troubles.acquire.push({ until: new Promise((resolve) => (answer = resolve)) });
    servers[0]!.put('x', 'theirs', 700);
    servers[1]!.put('x', 'theirs', 700);
    const timedOut = claim.tryAcquire(1_000, NEVER);
    await settle();
    servers[1]!.delete('x');
    expect(await claim.tryAcquire(1_000, NEVER)).toEqual({ status: 'held' });
    answer();
    expect((await timedOut).status).toBe('busy');
    await settle();
    expect(owners()).toEqual(['theirs', 'ours', 'ours']);
  });

  it('asks no server again before that has answered the release of an earlier attempt', async () => {
    let answer!: () => void;
    servers[0]!.put('x', 'theirs', 700);
    servers[1]!.put('x', 'theirs', 900);
    // Such as a script that the server does not know, and that has to be sent again as text.
    servers[2]!.troubles.release.push({ until: new Promise((resolve) => (answer = resolve)) });
    expect((await claim.tryAcquire(1_000, NEVER)).status).toBe('busy');
    servers[0]!.delete('x');
    const again = track(claim.tryAcquire(1_000, NEVER));
    await settle();
    answer();
    await settle();
    expect(again.value).toEqual({ status: 'held' });
    expect(owners()).toEqual(['ours', 'theirs', 'ours']);
  });

  it('releases a vote that comes after the others have failed', async () => {
    let answer!: () => void;
    servers[0]!.troubles.acquire.push({ until: new Promise((resolve) => (answer = resolve)) });
    servers[1]!.troubles.acquire.push({ failure: 'notExecuted' });
    servers[2]!.troubles.acquire.push({ failure: 'notExecuted' });
    await expect(claim.tryAcquire(1_000, NEVER)).rejects.toMatchObject({ failure: 'notExecuted' });
    answer();
    await settle();
    expect(servers[0]!.names()).toEqual(['acquire', 'release']);
    expect(servers[0]!.ownerOf('x')).toBeUndefined();
  });
});

function thrownBy(call: () => unknown): InvalidLockOptionsError {
  try {
    call();
  } catch (error) {
    return error as InvalidLockOptionsError;
  }
  throw new Error('nothing was thrown');
}

describe('the locks of other libraries', () => {
  const client = 'redis://localhost:1';

  it('say why there is no connection before an attempt counts as unanswered', async () => {
    const opened = redlock({ client }).open({ instanceId: 'a', now: () => performance.now(), randomId: () => 'id' });
    const attempt = opened.claim('x').tryAcquire(1_000, NEVER);
    const timedOut = new Promise((_, reject) => setTimeout(reject, 0.9 * LOCK_DEFAULTS.attemptTimeoutMs, 'no answer'));
    await expect(Promise.race([attempt, timedOut])).rejects.toMatchObject({
      failure: 'notExecuted',
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
    await opened.close();
    await timedOut.catch(() => {});
  });

  it('know their keys without sending anything', () => {
    expect(redlock({ client }).keyOf('a')).toBe('a');
    expect(redlock({ clients: [client, 'redis://localhost:2'], key: (name) => `locks:${name}` }).keyOf('a')).toBe(
      'locks:a',
    );
    expect(redisSemaphore({ client }).keyOf('a')).toBe('mutex:a');
    expect(redisSemaphore({ client, key: () => undefined }).keyOf('a')).toBeUndefined();
    expect(murlock({ client, key: (name) => `Orders:pay:${name}` }).keyOf('a')).toBe('Orders:pay:a');
    expect(setNx({ client, key: 'cron' }).keyOf('a')).toBe('cron');
  });

  it.each([
    ['client', () => redlock({})],
    ['client', () => redlock({ client, clients: [client] })],
    ['clients', () => redlock({ clients: [] })],
    ['client', () => redlock({ client: 'localhost' })],
    ['client', () => murlock({} as never)],
    ['key', () => setNx({ client } as never)],
    ['clients', () => redlock({ clients: [client, 'redis://localhost:2', client] })],
    ['clients', () => redisSemaphore({ clients: [client, { host: 'localhost', port: 1 }] })],
    ['key', () => redlock({ client, key: () => '' }).keyOf('a')],
    ['key', () => setNx({ client, key: '\ud800' })],
    ['key', () => redisSemaphore({ client, key: (() => 7) as never }).keyOf('a')],
    ['keepMs', () => setNx({ client, key: 'x', keepMs: -1 })],
    ['value', () => setNx({ client, key: 'x', value: 'const' as never })],
  ] as const)('refuse a wrong %s', (option, make) => {
    let error: unknown;
    try {
      make();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect((error as InvalidLockOptionsError).option).toBe(option);
  });

  it('name the function, the library and the resource where a key function throws', () => {
    const cause = new TypeError('no such order');
    const key = (): never => {
      throw cause;
    };
    for (const [name, lock] of [
      ['redlock', redlock({ client, key })],
      ['redisSemaphore', redisSemaphore({ client, key })],
      ['murlock', murlock({ client, key })],
      ['redisson', redisson({ client, key })],
      ['setNx', setNx({ client, key })],
    ] as const) {
      const error = thrownBy(() => lock.keyOf('order:1'));
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error).toMatchObject({ option: 'key', cause });
      expect(error.message).toBe(
        `The key function of ${name}() (alsoLock), called for "order:1", threw: no such order`,
      );
    }
  });

  it.each([
    [() => '', '""'],
    [() => 7, '7'],
    [() => null, 'null'],
    [() => Promise.reject(new Error('x')), 'an object (Promise)'],
    [() => '\ud800', /not well-formed/],
  ])('refuse what is no key: %s, and name the resource', (key, said) => {
    const { message, option } = thrownBy(() => setNx({ client, key: key as never }).keyOf('order:1'));
    expect(option).toBe('key');
    expect(message).toMatch(/^The key function of setNx\(\) \(alsoLock\) must return .* For "order:1", it returned /);
    expect(message.split('it returned ')[1]).toMatch(said);
  });

  it('say that the value function has thrown', async () => {
    const cause = new Error('no host name');
    const lock = setNx({
      client,
      key: 'x',
      value() {
        throw cause;
      },
    });
    const opened = lock.open({ instanceId: 'a', now: () => 0, randomId: () => 'id' });
    expect(thrownBy(() => opened.claim('x'))).toMatchObject({ option: 'value', cause });
    await opened.close();
  });

  it('take several databases of one server, and no client twice', async () => {
    expect(redlock({ clients: ['redis://localhost:1/0', 'redis://localhost:1/1'] }).library).toBe('redlock');
    const cluster = new Cluster(['redis://localhost:1'], { lazyConnect: true });
    const { message } = thrownBy(() => redlock({ clients: [client, cluster, cluster] }));
    expect(message).toContain('clients[1] and clients[2] are the same Redis');
    cluster.disconnect();
  });
});
