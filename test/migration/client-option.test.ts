import { Cluster, Redis } from 'ioredis';
import { InvalidLockOptionsError } from '../../lib/index.js';
import { murlock, redisSemaphore, redisson, redlock, setNx } from '../../lib/migration.js';

const SECRET = 'hunter2';

class Redlock {
  readonly clients = new Set();
  acquire(): void {}
}

/** What a client of node-redis 3 has. */
const nodeRedis3 = { duplicate: () => {}, send_command: () => {}, connected: true, options: { password: SECRET } };
/** What a pool of node-redis has. */
const nodeRedisPool = { duplicate: () => {}, sendCommand: () => {}, isOpen: true };

describe('the client of the old code is refused where it would lead to localhost, or nowhere', () => {
  const bad: [string, unknown, string][] = [
    ['undefined', undefined, 'not undefined (is an environment variable not set?).'],
    ['an empty text', '', 'not an empty string.'],
    ['an address without a scheme', `${SECRET}:6379`, 'not a string that begins with neither redis:// nor rediss://.'],
    ['the memory of a process', 'memory:', "not 'memory:', where no other library keeps its locks."],
    ['an empty object', {}, 'not an object (Object) without host, port, path, sentinels or cluster: for a Redis on'],
    ['options of nothing', { host: undefined }, 'not options whose host is undefined (is an environment variable'],
    ['a Promise', Promise.resolve(SECRET), 'not a Promise: await it.'],
    ['a client of node-redis 3', nodeRedis3, 'not a client of node-redis whose options cannot be read: give its'],
    ['a pool of node-redis', nodeRedisPool, 'not a client of node-redis whose options cannot be read: give its'],
    ['a Redlock', new Redlock(), 'not an object (Redlock) that takes locks: give the client that it was made with.'],
  ];
  describe.each(bad)('%s', (_, client, why) => {
    it.each([
      ['redlock', () => redlock({ client } as never)],
      ['redisSemaphore', () => redisSemaphore({ client } as never)],
      ['murlock', () => murlock({ client } as never)],
      ['setNx', () => setNx({ client, key: 'x' } as never)],
      ['redisson', () => redisson({ client } as never)],
    ])('by %s', (__, make) => {
      const error = refusal(make);
      expect(error.option).toBe('client');
      expect(error.message).toMatch(/^client must be /);
      expect(error.message).toContain(why);
      expect(error.message).not.toContain(SECRET);
    });
  });

  it('in a list too', () => {
    const error = refusal(() => redlock({ clients: ['redis://localhost', {} as never] }));
    expect(error.message).toMatch(/^clients\[1\] must be .*, not an object \(Object\) without host/);
    expect(refusal(() => redlock({ clients: undefined } as never)).message).toMatch(/^clients must be an array/);
    expect(refusal(() => redlock({})).message).toContain('either client');
  });

  it('and what says where the old locks are is taken', () => {
    const own = new Redis({ lazyConnect: true });
    const cluster = new Cluster([{ host: 'localhost' }], { lazyConnect: true });
    for (const client of [
      own,
      cluster,
      { port: 6379 },
      { path: '/tmp/redis.sock' },
      { cluster: ['redis://localhost'] },
    ]) {
      expect(redlock({ client }).library).toBe('redlock');
    }
    own.disconnect();
    cluster.disconnect();
  });
});

function refusal(make: () => unknown): InvalidLockOptionsError {
  try {
    make();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    return error as InvalidLockOptionsError;
  }
  throw new Error('It was taken.');
}
