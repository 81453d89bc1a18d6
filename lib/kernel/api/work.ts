import { Stream } from 'node:stream';
import { InvalidLockOptionsError } from './errors.js';
import { describeValue } from './validation.js';

/** @throws InvalidLockOptionsError for anything but a function */
export function checkWork<W extends (...args: never[]) => unknown>(work: W | undefined, source = 'using'): W {
  if (typeof work === 'function') return work;
  throw new InvalidLockOptionsError(
    `${source} needs a function to run under the lock, not ${describeValue(work)}.`,
    'work',
  );
}

/** Results of work whose code runs when something reads them, and what to do instead. */
const ADVICE = {
  'an Observable': 'It runs when something subscribes to it. Return its value instead: await lastValueFrom(observable)',
  'a generator':
    'Its code runs as it is consumed. Lock inside the generator, with using(), or return all values at once',
  'an async iterator': 'Its code runs as it is consumed. Read it to its end in the work, and return the values',
  'a stream':
    'It is consumed later. Wait for its end in the work, with finished() or pipeline() of node:stream/promises',
} as const;

type UnfinishedWork = keyof typeof ADVICE;

/** Returns the kind of a result that contains work which has not run yet; otherwise `undefined`. */
export function unfinishedWork(result: unknown): UnfinishedWork | undefined {
  if (result === null || typeof result !== 'object') return undefined;
  if (isObservable(result)) return 'an Observable';
  const stream = streamOf(result);
  if (stream) return isOpen(stream) ? 'a stream' : undefined;
  const tag = Object.prototype.toString.call(result);
  if (tag === '[object Generator]' || tag === '[object AsyncGenerator]') return 'a generator';
  if (tag === '[object ReadableStream]') return 'a stream';
  // Awaiting a query, for example, runs it.
  return Symbol.asyncIterator in result && !('then' in result) ? 'an async iterator' : undefined;
}

/**
 * Ends the unfinished work, so that it does not run. Returns the error for the caller.
 *
 * @param under the lock, for the message
 */
export function refuseUnfinished(result: unknown, kind: UnfinishedWork, under: string, work = 'The work'): Error {
  discard(result as object);
  return new InvalidLockOptionsError(
    `${work} returned ${kind} under ${under}, which would run after the lock is released. ${ADVICE[kind]}. ` +
      'A request handler whose result Nest sends to the client needs @LockHandler.',
    'work',
  );
}

/** Destroys a stream, and closes an iterator. */
export function discard(result: object, error?: Error): void {
  const stream = streamOf(result) as { destroy?(error?: Error): unknown } | undefined;
  const { return: end, cancel } = result as { return?: unknown; cancel?: unknown };
  if (stream) stream.destroy?.(error);
  else for (const close of [end, cancel]) if (typeof close === 'function') void closed(() => close.call(result));
}

async function closed(close: () => unknown): Promise<void> {
  try {
    await close();
  } catch {
    // It is not used any more.
  }
}

/** Returns the stream that the result is, or that it wraps, as the `StreamableFile` of Nest does. */
export function streamOf(result: object): Stream | undefined {
  const { getStream } = result as { getStream?: unknown };
  const stream: unknown = typeof getStream === 'function' ? getStream.call(result) : result;
  return stream instanceof Stream ? stream : undefined;
}

/** Returns true for a Web `Response`, whose body a server sends after its handler has ended. */
export function isWebResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]';
}

/** The response of an HTTP server stays `writable` after its end. */
function isOpen(stream: Stream): boolean {
  const { readable, writable, writableEnded } = stream as Stream &
    Partial<Record<'readable' | 'writable' | 'writableEnded', unknown>>;
  return readable === true || (writable === true && writableEnded !== true);
}

/** Duck-typed like in RxJS, because core does not depend on it. */
function isObservable({ subscribe, lift }: { subscribe?: unknown; lift?: unknown }): boolean {
  return typeof subscribe === 'function' && typeof lift === 'function';
}
