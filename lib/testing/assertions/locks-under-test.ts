import { AssertionError } from 'node:assert';
import type { LockEvent } from '../../core/events/events.js';
import type { LockObserver } from '../../core/events/observers.js';
import type { LockState } from '../../core/store/lock-state.js';
import { quote } from '../../core/util/quoted.js';

/** What the assertions need of the locks of an application. */
export interface LocksUnderTest {
  /** The name of the application where holders are shown. */
  readonly instanceId: string;
  /** Calls the observer with every event of the lock service from now on. @returns a function that removes it */
  observe(observer: LockObserver): () => void;
  /** All that is held by any application of the fleet. */
  states(): readonly LockState[];
  /** The failures that `failNext` has planned for an application of the fleet, and that met no command. */
  unmetFailures(): readonly string[];
  /** Where a lease was acquired by hand; `undefined` where work runs under it. */
  callSiteOf(resource: string, fencingToken: number): string | undefined;
}

/** The error of an assertion, with what happened to the locks meanwhile. */
export function failed(
  operator: (...args: never[]) => unknown,
  message: string,
  told: { actual: unknown; expected: unknown; story?: readonly string[] },
): AssertionError {
  const { actual, expected, story } = told;
  const lines = story === undefined ? '' : `\n\nWhat happened:\n${indented(story)}`;
  return new AssertionError({
    message: message + lines,
    actual,
    expected,
    operator: operator.name,
    stackStartFn: operator,
  });
}

function indented(story: readonly string[]): string {
  if (story.length === 0) return '  no lock was taken, and no call waited for one';
  return story.map((line) => `  ${line}`).join('\n');
}

/** One line of a story; `undefined` for an event that tells nothing here. */
export function lineOf(event: LockEvent): string | undefined {
  switch (event.type) {
    case 'acquired':
      return `acquired ${quote(event.resource)} (${event.mode}, token ${event.fencingToken})`;
    case 'waiting':
      return `waits for ${quote(event.resource)}`;
    case 'notAcquired':
      return `did not get ${quote(event.resource)}: ${event.error.message}`;
    case 'released':
    case 'transferred':
    case 'leftToExpire':
      return `${event.type} ${quote(event.resource)} (token ${event.fencingToken}) after ${Math.round(event.heldMs)} ms`;
    case 'lost':
      return `lost ${quote(event.resource)} (token ${event.fencingToken}): ${event.reason}`;
    case 'tickSkipped':
      return `skipped tick ${event.tick} of the job ${quote(event.job)}: ${event.reason}`;
    default:
      return undefined;
  }
}
