import type { DeadlockedCall, LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { deadlockedCalls, findCycle, type NestedWait } from '../../../lib/kernel/deadlocks/cycles.js';
import {
  cycleAmong,
  cyclesAmong,
  DeadlockWatch,
  type NestedWaits,
  type WatchedCall,
} from '../../../lib/kernel/deadlocks/deadlock-watch.js';
import { Alarms } from '../../../lib/kernel/util/alarms.js';
import { track } from '../../support/expect/tracked.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

describe('a deadlock', () => {
  type Mode = NestedWait['mode'];

  const wait = (
    instanceId: string,
    holds: readonly string[],
    resource: string,
    mode: Mode = 'exclusive',
  ): NestedWait => ({
    instanceId,
    isThisProcess: false,
    group: 'g',
    resource,
    mode,
    holds: holds.map((held) => ({ resource: held, mode })),
  });

  const among = (all: readonly NestedWait[]) => (resource: string) => all.filter((each) => each.resource === resource);
  const namesOf = (cycle: readonly NestedWait[]) => cycle.map(({ instanceId }) => instanceId).join('');

  describe('findCycle', () => {
    it('returns the shortest', () => {
      const a = wait('a', ['x'], 'y');
      expect(namesOf(findCycle(a, among([wait('b', ['z'], 'x'), wait('c', ['y'], 'z'), wait('d', ['y'], 'x')])))).toBe(
        'ad',
      );
    });

    it('names the lock that blocks each, if they hold more', () => {
      const cycle = findCycle(wait('a', ['x', 'v'], 'y'), among([wait('b', ['w', 'y'], 'v')]));
      expect(deadlockedCalls(cycle).map(({ holds }) => holds)).toEqual(['v', 'y']);
    });

    it.each([
      ['calls in a row', [wait('b', ['y'], 'z'), wait('c', ['z'], 'w')]],
      ['a cycle that the call only waits for', [wait('b', ['y'], 'z'), wait('c', ['z'], 'y')]],
      ['no call', []],
    ])('finds none among %s', (_name, others) => {
      expect(findCycle(wait('a', ['x'], 'y'), among(others))).toEqual([]);
    });

    it.each([
      ['read', 'read', 0],
      ['write', 'read', 1],
      ['read', 'write', 1],
      ['exclusive', 'exclusive', 1],
      ['semaphore', 'semaphore', 0],
      ['exclusive', 'semaphore', 0],
    ] as const)('takes %s behind %s as it is', (wanted, held, found) => {
      const a = { ...wait('a', [], 'y', wanted), holds: [{ resource: 'x', mode: 'exclusive' as const }] };
      const b = { ...wait('b', [], 'x'), holds: [{ resource: 'y', mode: held }] };
      expect(findCycle(a, among([b])).length > 0 ? 1 : 0).toBe(found);
    });

    it('follows no reader to a holder of unknown mode, and a writer to every holder', () => {
      const unknown = { ...wait('b', [], 'x'), holds: [{ resource: 'y' }] };
      expect(findCycle({ ...wait('a', ['x'], 'y'), mode: 'read' }, among([unknown]))).toEqual([]);
      expect(namesOf(findCycle(wait('a', ['x'], 'y'), among([unknown])))).toBe('ab');
    });
  });

  describe('cycleAmong', () => {
    const answer = (each: NestedWait, waitedMs: number) => ({ ...each, waitedMs });

    it('counts a wait only if it had begun before the first answer', () => {
      const a = wait('a', ['x'], 'y');
      const found = (waitedMs: number, startedAt: number) =>
        cycleAmong(
          { waits: [answer(wait('b', ['y'], 'x'), waitedMs)], readAt: 1_000, withinMs: 300 },
          { startedAt, nestedWait: () => a },
        );
      expect(found(300, 700)).toHaveLength(2);
      expect(found(299, 700)).toBeUndefined();
      expect(found(300, 701)).toBeUndefined();
    });
  });

  describe('cyclesAmong', () => {
    const answer = (each: NestedWait, waitedMs: number) => ({ ...each, waitedMs });

    it('returns each cycle once, of waits that had begun before the first answer', () => {
      const found = (waitedMs: number) => {
        const waits = [wait('a', ['x'], 'y'), wait('b', ['y'], 'x'), wait('c', ['v'], 'w'), wait('d', ['w'], 'v')];
        const told = cyclesAmong({
          waits: waits.map((each, index) => answer(each, index === 3 ? waitedMs : 300)),
          readAt: 1_000,
          withinMs: 300,
        });
        return told.map((calls) => calls.map(({ instanceId }) => instanceId).join(''));
      };
      expect(found(300)).toEqual(['ab', 'cd']);
      expect(found(299)).toEqual(['ab']);
    });

    it('limits the number of calls, so that it blocks no process', () => {
      // Each of 100 readers in a row of 30 resources wants to write the next one.
      const waits = Array.from({ length: 3_000 }, (_, i) => ({
        ...wait(`${i}`, [], `r${Math.floor(i / 100) + 1}`, 'write'),
        holds: [{ resource: `r${Math.floor(i / 100)}`, mode: 'read' as const }],
      }));
      let looks = 0;
      const counted = waits.map((each) => ({
        ...each,
        waitedMs: 300,
        get mode() {
          looks++;
          return each.mode;
        },
      }));
      expect(cyclesAmong({ waits: counted, readAt: 1_000, withinMs: 300 })).toEqual([]);
      expect(looks).toBeLessThan(500_000);
    });
  });

  /**
   * Calls take and leave locks as they like, and each process answers at a moment of its own. What is reported must have
   * been true of all of them at one moment.
   */
  describe('a cycle that is reported', () => {
    const RESOURCES = ['v', 'w', 'x', 'y'];

    /** Runs four calls in a process each, which answered the same roll call. */
    const historyOf = (seed: number) => {
      const random = new SeededRandom(seed);
      const pick = (n: number) => Math.floor(random.fraction() * n);
      /** Each call: phases of holding one lock and waiting for another one, one after the other. */
      const calls = Array.from({ length: 4 }, () => {
        const phases: { from: number; to: number; holds: string; wants: string }[] = [];
        for (let at = pick(40); at < 200;) {
          const to = at + 1 + pick(120);
          const holds = RESOURCES[pick(4)]!;
          const wants = RESOURCES.filter((each) => each !== holds)[pick(3)]!;
          phases.push({ from: at, to, holds, wants });
          at = to + pick(10);
        }
        return phases;
      });
      const stateAt = (call: number, at: number) => calls[call]!.find(({ from, to }) => from <= at && at < to);
      const [askedAt, readAt] = [100, 100 + pick(60)];
      const waits = calls.flatMap((_, call) => {
        const answeredAt = askedAt + pick(readAt - askedAt + 1);
        const state = stateAt(call, answeredAt);
        return state ? [{ ...wait(`${call}`, [state.holds], state.wants), waitedMs: answeredAt - state.from }] : [];
      });
      return { askedAt, answers: { waits, readAt, withinMs: readAt - askedAt }, stateAt };
    };

    it.each<[string, (history: ReturnType<typeof historyOf>) => readonly (readonly DeadlockedCall[])[]]>([
      [
        'to a call at the end of its wait',
        ({ answers, stateAt }) => {
          const own = stateAt(0, answers.readAt);
          if (!own) return [];
          const others = answers.waits.filter(({ instanceId }) => instanceId !== '0');
          const call = { startedAt: own.from, nestedWait: () => wait('0', [own.holds], own.wants) };
          return [cycleAmong({ ...answers, waits: others }, call) ?? []];
        },
      ],
      ['to an operator', ({ answers }) => cyclesAmong(answers)],
    ])('%s existed at some moment', (_name, report) => {
      let reported = 0;
      for (let seed = 1; seed <= 3_000; seed++) {
        const history = historyOf(seed);
        for (const cycle of report(history)) {
          if (cycle.length > 0) reported++;
          for (const { instanceId, holds, wants } of cycle) {
            const then = history.stateAt(Number(instanceId), history.askedAt);
            expect({ seed, ...then }).toMatchObject({ seed, holds, wants });
          }
        }
      }
      expect(reported).toBeGreaterThan(50);
    });
  });
});

describe('DeadlockWatch', () => {
  const wait = (instanceId: string, held: string, resource: string): NestedWait => ({
    instanceId,
    isThisProcess: instanceId === 'a',
    group: 'g',
    resource,
    mode: 'exclusive',
    holds: [{ resource: held, mode: 'exclusive' }],
  });

  let clock: FakeClock;
  let alarms: Alarms;
  let asked: number[];
  let answer: () => Promise<NestedWaits>;
  let watch: DeadlockWatch;

  beforeEach(() => {
    clock = new FakeClock();
    alarms = new Alarms(clock);
    asked = [];
    answer = async () => ({ waits: [], readAt: clock.now(), withinMs: 10 });
    watch = new DeadlockWatch({ clock, alarms }, () => {
      asked.push(clock.now() - beganAt);
      return answer();
    });
    beganAt = clock.now();
  });
  let beganAt: number;

  const callOf = (waitMs: number): WatchedCall => {
    const startedAt = clock.now();
    return { startedAt, giveUpAt: startedAt + waitMs, nestedWait: () => wait('a', 'x', 'y') };
  };
  const cycle = async (): Promise<NestedWaits> => ({
    waits: [{ ...wait('b', 'y', 'x'), waitedMs: 100 }],
    readAt: clock.now(),
    withinMs: 10,
  });

  it('asks a second before the end of a wait, or in the middle of a short one', async () => {
    watch.watch(callOf(10_000));
    await clock.advance(8_999);
    expect(asked).toEqual([]);
    await clock.advance(20_000);
    expect(asked).toEqual([9_000]);
    watch.watch(callOf(200));
    await clock.advance(200);
    expect(asked).toEqual([9_000, 29_099]);
  });

  it('sends nothing if the process was blocked until the wait had ended', async () => {
    watch.watch(callOf(1_000));
    clock.block(1_000);
    await clock.advance(1);
    expect(asked).toEqual([]);
  });

  it.each([
    ['fails', () => Promise.reject(new Error('Redis is away'))],
    ['never ends', () => new Promise<never>(() => {})],
  ])('leaves the call unchanged if the roll call %s', async (_name, question) => {
    answer = question;
    const call = callOf(1_000);
    watch.watch(call);
    await clock.advance(5_000);
    expect(call.deadlock).toBeUndefined();
  });

  it('asks once for all calls of a second', async () => {
    const calls = Array.from({ length: 50 }, () => callOf(1_000));
    answer = cycle;
    for (const call of calls) watch.watch(call);
    await clock.advance(1_000);
    expect(asked).toHaveLength(1);
    for (const call of calls) expect(call.deadlock).toBeDefined();
  });
});

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
    const site = String.raw`\(.*deadlocks\.test\.ts:\d+:\d+\)?\)`;
    expect(error!.message).toMatch(
      new RegExp(
        `This call also holds "x", and the holder waits for that, directly or through other calls: a deadlock, which a longer wait cannot resolve\\. ` +
          `This call holds "x" and wants "y" ${site}; "b" holds "y" and wants "x" ${site}\\. ` +
          `Acquire all of them in one call: \\["x", "y"\\]\\. See `,
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
      /Calls wait for each other, which is a deadlock: "b" holds "y" and wants "x" \(.*\); "a" holds "x" and wants "y" \(.*\)\. The deadlock ends when the waitMs of one of the calls runs out\. If all wait forever \(waitMs: Infinity\), end one lease, by forceRelease\(\) or npx nestjs-redis-lock release y\./,
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
