import fc from 'fast-check';
import { track, type Tracked } from '../expect/tracked.js';
import type { FakeClock } from '../world/fake-clock.js';
import { brokenAfter, type Fate, failing, lostOnTheWay, replyLost } from '../world/scripted-store.js';
import { runs } from './runs.js';

const RUNS = runs(600, 300);
/** Trouble happens up to then. */
const TROUBLE_MS = 4_000;
/** A time-out and the pause after it, or a heartbeat. */
const SLACK_MS = 1_000 + 625 + 1_250;

/** Possible fates of a command. */
const FATES: Record<string, Fate> = {
  replyLost,
  lostOnTheWay,
  brokenAfter,
  notExecuted: failing('notExecuted'),
  unknown: failing('unknown'),
};

/** When something happens, and in which of three processes. */
export const at = fc.nat(TROUBLE_MS);
export const on = fc.nat(2);

export interface SimulatedEvent {
  readonly at: number;
  readonly run: () => void;
}

/** Three processes that wait on one server until a resource is free. */
export interface WaitScene {
  readonly clock: FakeClock;
  /** The events that make the condition true, and end it. */
  readonly events: readonly SimulatedEvent[];
  readonly stores: readonly { isDeaf: boolean; reconnect(): void }[];
  /** Returns true if the condition holds now, on the server. */
  isThere(): boolean;
  wait(on: number, options: { waitMs: number; signal: AbortSignal }): Promise<void>;
  /** Begins a trouble that only this scene has. @returns what ends it */
  trouble(what: string, on: number, fate: Fate, lastingMs: number): () => void;
  /** All is well again: in the end it is so, and remains so. */
  conclude(): Promise<void>;
  /** All have ended: nothing is left, in the processes and on the server. */
  expectNothingLeft(): Promise<void>;
}

/** The condition to wait for. */
export interface WaitSubject<Course> {
  /** Its events. */
  readonly course: fc.Arbitrary<Course>;
  /** The faults besides lost messages and reconnections. */
  readonly troubles: readonly string[];
  /** @param look notes whether it is so now. The clock looks after each of its steps, and before and after each event */
  open(course: Course, look: () => void): WaitScene;
}

interface Outcomes {
  readonly plans: number;
  readonly resolved: number;
  readonly inVain: number;
}

/** A wait that has begun. */
interface SimulatedWait {
  readonly from: number;
  readonly waitMs: number;
  readonly isAborted: boolean;
  endedAt: number | undefined;
  readonly call: Tracked<void>;
}

/**
 * Checks that, with any loss, a waiter is notified in time, never notified wrongly, and leaves nothing behind.
 *
 * @returns the number of plans, and of the waits by outcome. Without any it has proved nothing
 * @throws the errors that fail a test
 */
export async function simulateWaits<Course>({ course, troubles, open }: WaitSubject<Course>): Promise<Outcomes> {
  const plan = fc.record({
    course,
    waits: fc.array(
      fc.record({
        at,
        on,
        waitMs: fc.constantFrom(0, 50, 800, 3_000, Infinity),
        abortMs: fc.option(fc.nat(2_000), { nil: undefined }),
      }),
      { minLength: 1, maxLength: 10 },
    ),
    trouble: fc.array(
      fc.record({
        at,
        on,
        what: fc.constantFrom('deaf', 'reconnect', ...troubles),
        fate: fc.constantFrom(...Object.keys(FATES)),
        lastingMs: fc.nat(1_500),
      }),
      { maxLength: 8 },
    ),
  });
  let resolved = 0;
  let inVain = 0;
  const property = fc.asyncProperty(plan, async (given) => {
    const seen: number[] = [];
    const waits: SimulatedWait[] = [];
    const look = (): void => {
      if (scene.isThere()) seen.push(scene.clock.now());
    };
    const scene = open(given.course, look);
    // From then on nothing is lost, and every process has asked without trouble.
    const calmFrom =
      scene.clock.now() + Math.max(0, ...given.trouble.map((each) => each.at + each.lastingMs + SLACK_MS));
    const events = [
      ...scene.events,
      ...given.waits.map((wait) => ({ at: wait.at, run: () => void waits.push(beginWait(wait, scene)) })),
      ...given.trouble.flatMap((each) => eventsOf(each, scene)),
    ];
    await play(events, scene, look);

    for (const { from, endedAt, waitMs, isAborted, call } of waits) {
      expect(call.state).not.toBe('pending');
      // When nothing was lost any more.
      const inTime = seen.filter((time) => time >= Math.max(from, calmFrom));
      if (call.state === 'fulfilled') {
        resolved++;
        expect(seen.some((time) => time >= from && time <= endedAt!)).toBe(true);
        expect(endedAt!).toBeLessThanOrEqual(Math.max(inTime[0] ?? Infinity, calmFrom) + SLACK_MS);
        continue;
      }
      inVain++;
      const { code } = call.error as { code: string };
      expect(code).toMatch(isAborted ? /^LOCK_(ABORTED|TIMEOUT|UNAVAILABLE)$/ : /^LOCK_(TIMEOUT|UNAVAILABLE)$/);
      if (!isAborted) expect(endedAt! - from).toBeGreaterThanOrEqual(waitMs);
      // It was not so for long while this one waited.
      expect([code, inTime.filter((time) => time < endedAt! - SLACK_MS)]).toEqual([code, []]);
    }
    await scene.expectNothingLeft();
    expect(scene.clock.timers).toBe(0);
  });
  await fc.assert(property, { numRuns: RUNS, seed: 20_260_101 });
  return { plans: RUNS, resolved, inVain };
}

async function play(events: readonly SimulatedEvent[], scene: WaitScene, look: () => void): Promise<void> {
  const { clock } = scene;
  const begin = clock.now();
  clock.onStep = look;
  for (const { at, run } of events.toSorted((a, b) => a.at - b.at)) {
    await clock.advance(begin + at - clock.now());
    look();
    run();
    await clock.advance(0);
    look();
  }
  await clock.advance(TROUBLE_MS);
  await scene.conclude();
  look();
  await clock.advance(SLACK_MS);
}

interface Trouble {
  readonly at: number;
  readonly on: number;
  readonly what: string;
  readonly fate: string;
  readonly lastingMs: number;
}

function eventsOf({ at, on, what, fate, lastingMs }: Trouble, scene: WaitScene): SimulatedEvent[] {
  const store = scene.stores[on]!;
  let end = (): void => {};
  const begin = (): void => {
    if (what === 'reconnect') return store.reconnect();
    if (what !== 'deaf') return void (end = scene.trouble(what, on, FATES[fate]!, lastingMs));
    store.isDeaf = true;
    end = () => (store.isDeaf = false);
  };
  return [
    { at, run: begin },
    { at: at + lastingMs, run: () => end() },
  ];
}

/** Begins a wait, aborts it if that is planned, and notes when it ended. */
function beginWait(
  { on, waitMs, abortMs }: { readonly on: number; readonly waitMs: number; readonly abortMs: number | undefined },
  { clock, wait }: WaitScene,
): SimulatedWait {
  const controller = new AbortController();
  if (abortMs !== undefined) clock.setTimer(() => controller.abort(), abortMs);
  const promise = wait(on, { waitMs, signal: controller.signal });
  const begun: SimulatedWait = {
    from: clock.now(),
    waitMs,
    isAborted: abortMs !== undefined,
    endedAt: undefined,
    call: track(promise),
  };
  const end = () => (begun.endedAt = clock.now());
  promise.then(end, end);
  return begun;
}
