import { runUnbundled } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';

type Seen = readonly string[];

interface Stories {
  readonly method: readonly Seen[];
  readonly handler: readonly Seen[];
  readonly events: readonly Seen[];
  readonly above: readonly Seen[];
  readonly below: readonly Seen[];
  readonly here: string;
  readonly order: unknown;
  readonly keyed: Seen;
}

const USERS = Array.from({ length: 40 }, (_, index) => `user-${index}`);
const resourceOf = (index: number): string => `r${index % 2}`;
const everyUser = (seen: (user: string, resource: string) => Seen): Seen[] =>
  USERS.map((user, index) => seen(user, resourceOf(index)));

describe('nestjs-cls', () => {
  const redis = useRedis();
  let stories: Record<string, Stories>;
  let grants: { toWaiters: number; inRequests: number };

  beforeAll(async () => {
    const { code, stdout, stderr } = await runUnbundled(new URL('cls-main.ts', import.meta.url), [redis().url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    ({ stories, grants } = JSON.parse(stdout) as { stories: typeof stories; grants: typeof grants });
  });

  describe.each(['middleware', 'guard', 'interceptor'])('by its %s', (mode) => {
    it('40 requests that wait for two locks each keep their own store, and their own lease', () => {
      const { method } = stories[mode]!;
      expect(method).toEqual(everyUser((user, lock) => [`${user} unlocked`, `${user} ${lock}`, `${user} unlocked`]));
    });

    it('so do those that @LockHandler keeps waiting', () => {
      expect(stories[mode]!.handler).toEqual(everyUser((user, lock) => [`${user} ${lock}`]));
    });

    it('and the streams of server-sent events', () => {
      expect(stories[mode]!.events).toEqual(everyUser((user, lock) => [`${user} ${lock}`]));
    });

    it('@UseCls above and below @DistributedLock has a store of its own for each call', () => {
      expect(stories[mode]!.above).toEqual(everyUser((user) => [`${user} job`]));
      expect(stories[mode]!.below).toEqual(everyUser((user) => [`${user} job`]));
    });

    it('outside of a request, nothing is left of one', () => {
      expect(stories[mode]!.here).toBe('nobody unlocked');
    });

    it('a key function reads the store', () => {
      expect(stories[mode]!.order).toEqual({ orderId: '7', user: 'ann', lock: 'ann:order:7' });
      expect(stories[mode]!.keyed).toEqual(['ann ann']);
    });
  });

  it('observers run in no request, whose grant they may see', () => {
    expect(grants.inRequests).toBe(0);
    expect(grants.toWaiters).toBeGreaterThan(3 * 100);
  });
});
