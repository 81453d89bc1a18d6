import type { LockTimeoutError } from '../../../lib/kernel/api/errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';

describe('calls of several instances that wait for each other', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const WAIT_MS = 4_000;

  /** Takes one inside the other, and keeps the first when the second is not had. */
  const nested = ({ locks }: Instance, outer: string, inner: string | string[], options: LockOptions = {}) =>
    track(
      locks
        .using(outer, { waitMs: 0, mode: options.mode ?? 'exclusive' }, async () => {
          await settle();
          const error = await locks
            .using(inner, { waitMs: WAIT_MS, ...options }, () => undefined)
            .catch((thrown) => thrown);
          await new Promise(() => {});
          return error as unknown;
        })
        .catch(() => {}),
    );
  /** Of the inner calls. */
  const errorsOf = ({ events }: Instance): LockTimeoutError[] =>
    events.flatMap((event) => (event.type === 'notAcquired' ? [event.error as LockTimeoutError] : []));
  const cycleOf = ({ heldByCaller }: LockTimeoutError) =>
    heldByCaller?.deadlock?.map(({ instanceId, holds, wants }) => `${instanceId}: ${holds} > ${wants}`);
  /** In steps, as the answers of other instances come. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) await world.clock.advance(Math.min(50, left));
  };

  it('are named in the error of each, with their call sites, and the wait ends in time', async () => {
    nested(a, 'x', 'y');
    nested(b, 'y', 'x');
    await pass(WAIT_MS + 100);
    const [error] = errorsOf(a);
    expect(cycleOf(error!)).toEqual(['a: x > y', 'b: y > x']);
    expect(cycleOf(errorsOf(b)[0]!)).toEqual(['b: y > x', 'a: x > y']);
    expect(error!.waitedMs).toBe(WAIT_MS);
    const site = String.raw`\(.*across-instances\.test\.ts:\d+:\d+\)?\)`;
    expect(error!.message).toMatch(
      new RegExp(
        `This call also holds "x", and the holder waits for that: a deadlock, which a longer wait cannot resolve\\. ` +
          `This call holds "x" and wants "y" ${site}; "b" holds "y" and wants "x" ${site}\\. ` +
          `Take all of them in one call, outside: \\["x", "y"\\]\\. See `,
      ),
    );
    expect(String(error!.cause)).toMatch(
      /^Deadlock: "a" holds "x" and wants "y" \(.*\); "b" holds "y" and wants "x" \(/,
    );
    expect(Object.keys(error!)).not.toContain('cause');
  });

  describe('and the wait ends in time', () => {
    const expectInTime = (error: LockTimeoutError | undefined, code = 'LOCK_TIMEOUT') => {
      expect(error).toMatchObject({ code });
      expect(error!.heldByCaller?.deadlock).toBeUndefined();
    };

    it.each([
      ['the question fails', () => Promise.reject(new Error('Redis is away'))],
      ['the question has no answer', () => new Promise<never>(() => {})],
    ])('if %s', async (_name, call) => {
      a.store.rollCalls!.call = call;
      nested(a, 'x', 'y');
      nested(b, 'y', 'x');
      await pass(WAIT_MS + 50);
      const [error] = errorsOf(a);
      expectInTime(error);
      expect(error!.waitedMs).toBe(WAIT_MS);
    });

    it('if the process was blocked', async () => {
      nested(a, 'x', 'y');
      nested(b, 'y', 'x');
      await pass(WAIT_MS - 1_100);
      world.clock.block(2_000);
      await pass(100);
      expectInTime(errorsOf(a)[0]);
    });

    it('if its signal aborts during the roll call', async () => {
      const caller = new AbortController();
      a.store.rollCalls!.call = () => new Promise<never>(() => {});
      nested(a, 'x', 'y', { signal: caller.signal });
      nested(b, 'y', 'x');
      await pass(WAIT_MS - 600);
      caller.abort();
      await settle();
      expectInTime(errorsOf(a)[0], 'LOCK_ABORTED');
    });

    it('if the application shuts down', async () => {
      nested(a, 'x', 'y');
      nested(b, 'y', 'x');
      await pass(WAIT_MS - 900);
      void a.locks.shutdown(100);
      await pass(400);
      expectInTime(errorsOf(a)[0], 'LOCK_SHUTDOWN');
    });
  });

  it('are named by explain(), asked by any instance, while they wait', async () => {
    const c = world.instance('c');
    nested(a, 'x', 'y');
    nested(b, 'y', 'x');
    await pass(2_000);
    const explanation = track(c.locks.operators.explain('x'));
    await pass(500);
    expect(explanation.value).toMatchObject({ cause: 'deadlock' });
    expect(explanation.value.text).toMatch(
      /Calls wait for each other, which is a deadlock: "b" holds "y" and wants "x" \(.*\); "a" holds "x" and wants "y" \(.*\)\. The first of them whose waitMs ends resolves it\. If all wait forever \(waitMs: Infinity\), end one lease, by forceRelease\(\) or npx nestjs-redis-lock release y\./,
    );
    const own = track(a.locks.operators.explain('y'));
    await pass(500);
    expect(own.value.text).toContain('a deadlock: A call of this process holds "x" and wants "y"');
  });

  it('are named by explain() to another instance, though they wait within one process and so in no queue of Redis', async () => {
    const crossing = (outer: string, inner: string) =>
      a.locks.using(outer, {}, async () => {
        await new Promise<void>((resolve) => world.clock.setTimer(resolve, 100));
        await a.locks.using(inner, { waitMs: Infinity }, () => {});
      });
    track(Promise.all([crossing('x', 'y'), crossing('y', 'x')]));
    await pass(2_000);
    const explanation = track(b.locks.operators.explain('x'));
    await pass(500);
    expect(explanation.value).toMatchObject({ cause: 'deadlock', state: { waiters: [] } });
  });

  it('are not reported by explain() if there is no cycle, or if the instances do not answer', async () => {
    nested(a, 'x', 'y');
    await b.locks.acquire('y');
    await pass(1_000);
    const explanation = track(b.locks.operators.explain('y'));
    await pass(500);
    expect(explanation.value.cause).toBe('inUse');
    b.store.rollCalls!.call = () => new Promise<never>(() => {});
    await pass(1_000);
    const late = track(b.locks.operators.explain('y'));
    await pass(1_050);
    expect(late.value.cause).toBe('inUse');
  });

  it('are not named on a quorum, which has no roll calls: the error reports a possible deadlock', async () => {
    const quorum = new QuorumWorld({ nodes: 3, seed: 1 });
    const [one, other] = [quorum.client(), quorum.client()];
    const errors: LockTimeoutError[] = [];
    const crossing = ({ locks }: typeof one, outer: string, inner: string) =>
      locks.using(outer, {}, async () => {
        await new Promise<void>((resolve) => quorum.clock.setTimer(resolve, 100));
        await locks.using(inner, { waitMs: 2_000 }, () => {}).catch((error: LockTimeoutError) => errors.push(error));
        await new Promise<void>((resolve) => quorum.clock.setTimer(resolve, 1_000));
      });
    const both = Promise.all([crossing(one, 'x', 'y'), crossing(other, 'y', 'x')]);
    await quorum.clock.advance(5_000);
    await both;
    expect(errors.map(({ heldByCaller }) => heldByCaller)).toEqual([{ resources: ['x'] }, { resources: ['y'] }]);
    expect(errors[0]!.message).toContain('If the holder waits for that, it is a deadlock');
  });
});
