import { AssertionError } from 'node:assert';
import type { LockEvent } from '../../kernel/events/events.js';
import type { LockObserver } from '../../kernel/events/observers.js';
import type { LockState } from '../../kernel/store/lock-state.js';
import { quote } from '../../kernel/util/quoted.js';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { describeValue } from '../../kernel/api/validation.js';
import { isObject } from '../../kernel/util/objects.js';

/** The view of an application's locks for assertions. */
export interface LocksUnderTest {
  /** The name of the application, shown for holders. */
  readonly instanceId: string;
  /** Calls the observer with every later event of the lock service. @returns a function that removes it */
  observe(observer: LockObserver): () => void;
  /** The state of everything that any application of the fleet holds. */
  states(): readonly LockState[];
  /** The failures that `failNext` has planned for an application of the fleet, and that hit no command. */
  unmetFailures(): readonly string[];
  /** Returns the call site of a lease from `acquire`; `undefined` for `using`. */
  callSiteOf(resource: string, fencingToken: number): string | undefined;
}

/** Creates the error of an assertion, with the events of the locks. */
export function failed(
  operator: (...args: never[]) => unknown,
  message: string,
  details: { actual: unknown; expected: unknown; story?: readonly string[] },
): AssertionError {
  const { actual, expected, story } = details;
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

/** Returns the line of an event; `undefined` for an irrelevant one. */
export function lineOf(event: LockEvent): string | undefined {
  switch (event.type) {
    case 'acquired':
      return `acquired ${quote(event.resource)} (${event.mode}, token ${event.fencingToken})`;
    case 'waiting':
      return `waits for ${quote(event.resource)}`;
    case 'notAcquired':
      return `did not get ${quote(event.resource)}: ${event.error.message}`;
    case 'released':
    case 'leaseAbandoned':
      return `${event.type} ${quote(event.resource)} (token ${event.fencingToken}) after ${Math.round(event.heldMs)} ms`;
    case 'lost':
      return `lost ${quote(event.resource)} (token ${event.fencingToken}): ${event.reason}`;
    case 'tickSkipped':
      return `skipped tick ${event.tick} of the job ${quote(event.job)}: ${event.reason}`;
    default:
      return undefined;
  }
}

/** Called around each call of a method. @param name `Class.method`, for messages */
type Around = (name: string, call: () => unknown) => unknown;

/** Dependencies of the code under test, such as a repository. */
export type Touched = object | readonly object[];

/**
 * Wraps the methods of some objects, until the returned function is called.
 *
 * @throws InvalidLockOptionsError when one of them is not an object with methods
 */
export function aroundCalls(where: string, touched: Touched, around: Around): () => void {
  const objects = [touched].flat() as object[];
  const methods = objects.flatMap((object) => methodsOf(object, where).map((name) => ({ object, name })));
  const undo = methods.map(({ object, name }) => replace(object as Record<string, unknown>, name, around));
  return () => undo.forEach((each) => each());
}

function methodsOf(object: unknown, where: string): string[] {
  const names = new Set<string>();
  for (let each = object; isObject(each) && each !== Object.prototype; each = Object.getPrototypeOf(each) as unknown) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each))) {
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
    }
  }
  if (names.size > 0 && Object.isExtensible(object)) return [...names];
  throw new InvalidLockOptionsError(
    `touching of ${where} must be an object with methods, such as a repository, or an array of them, ` +
      `not ${describeValue(object)}.`,
    'touching',
  );
}

function replace(object: Record<string, unknown>, name: string, around: Around): () => void {
  const original = object[name] as (...args: unknown[]) => unknown;
  const own = Object.getOwnPropertyDescriptor(object, name);
  const label = `${object.constructor?.name ?? 'object'}.${name}`;
  const value = function (this: unknown, ...args: unknown[]): unknown {
    return around(label, () => original.apply(this, args));
  };
  Object.defineProperty(object, name, {
    value,
    configurable: true,
    writable: true,
    enumerable: own?.enumerable ?? false,
  });
  return () => {
    if (own) Object.defineProperty(object, name, own);
    else delete object[name];
  };
}
