import fc from 'fast-check';
import { track, type Tracked } from '../expect/tracked.js';
import type { FakeClock } from '../world/fake-clock.js';
import { brokenAfter, type Fate, failing, lostOnTheWay, replyLost } from '../world/scripted-store.js';

/** Trouble happens up to then. */
export const TROUBLE_MS = 4_000;
/** A time-out and the pause after it, or a heartbeat. */
export const SLACK_MS = 1_000 + 625 + 1_250;

/** What may become of a command. */
export const FATES: Record<string, Fate> = {
  replyLost,
  lostOnTheWay,
  brokenAfter,
  notExecuted: failing('notExecuted'),
  unknown: failing('unknown'),
};

/** When something happens, and in which of three processes. */
export const at = fc.nat(TROUBLE_MS);
export const on = fc.nat(2);

/** Waits of a plan, for something that is not taken. */
export const plannedWaits = fc.array(
  fc.record({
    at,
    on,
    waitMs: fc.constantFrom(0, 50, 800, 3_000, Infinity),
    abortMs: fc.option(fc.nat(2_000), { nil: undefined }),
  }),
  { minLength: 1, maxLength: 10 },
);
type PlannedWait = (typeof plannedWaits extends fc.Arbitrary<infer T> ? T : never)[number];

/** A wait that has begun. */
export interface SimulatedWait {
  readonly from: number;
  readonly waitMs: number;
  readonly isAborted: boolean;
  endedAt: number | undefined;
  readonly call: Tracked<void>;
}

/** Begins a wait, aborts it if that is planned, and notes when it ended. */
export function beginWait(
  { waitMs, abortMs }: PlannedWait,
  clock: FakeClock,
  begin: (options: { waitMs: number; signal: AbortSignal }) => Promise<void>,
): SimulatedWait {
  const controller = new AbortController();
  if (abortMs !== undefined) clock.setTimer(() => controller.abort(), abortMs);
  const promise = begin({ waitMs, signal: controller.signal });
  const wait: SimulatedWait = {
    from: clock.now(),
    waitMs,
    isAborted: abortMs !== undefined,
    endedAt: undefined,
    call: track(promise),
  };
  const end = () => (wait.endedAt = clock.now());
  promise.then(end, end);
  return wait;
}
