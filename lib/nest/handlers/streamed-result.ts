import { finished } from 'node:stream';
import { AsyncResource } from 'node:async_hooks';
import 'reflect-metadata';
import type { ExecutionContext } from '@nestjs/common';
import { onDisconnect, rawResponse } from './client-disconnect.js';
import { LockError } from '../../kernel/api/errors.js';
import { discard, isWebResponse, streamOf } from '../../kernel/api/work.js';
import { graphqlError } from './answers.js';

/**
 * Returns true if Nest sends the result in parts after the handler has ended: a file, a stream, an async generator, a
 * Web `Response`.
 */
function isSentInParts(value: unknown): value is object {
  if (value === null || typeof value !== 'object') return false;
  if (streamOf(value)) return true;
  // Nest awaits a thenable, such as a query, and sends the value that it resolves to.
  if (Symbol.asyncIterator in value) return !('then' in value);
  return isWebResponse(value);
}

/** A result that Nest sends after the handler has ended. */
interface Sending {
  readonly value: unknown;
  /** Resolves when everything is sent, or the client is gone. */
  readonly sent: Promise<void>;
  readonly breakOff: (reason: unknown) => void;
}

/** Returns `undefined` for a result that is sent at once. */
export function sendingOf(value: unknown, context: ExecutionContext): Sending | undefined {
  if (isSubscription(value, context)) {
    const events = new SubscribedEvents(value, context);
    return { value: events, sent: events.ended, breakOff: (reason) => events.fail(reason) };
  }
  const sent = untilSent(value, context);
  return (
    sent && {
      value,
      sent,
      breakOff: (reason) => discard(value as object, reason instanceof Error ? reason : undefined),
    }
  );
}

/**
 * Resolves when the result of an HTTP handler is sent, because its stream or the response has ended: the client may
 * disconnect, or an interceptor may send another answer.
 *
 * @returns `undefined` for a result that is sent at once
 */
function untilSent(value: unknown, context: ExecutionContext): Promise<void> | undefined {
  if (context.getType() !== 'http' || !isSentInParts(value)) return undefined;
  const response = rawResponse(context);
  const stream = streamOf(value) as NodeJS.ReadableStream | undefined;
  return new Promise((resolve) => {
    const sent = (): void => resolve();
    if (stream) finished(stream, { writable: false }, sent);
    if (response.destroyed || response.writableFinished) return sent();
    response.once?.('close', sent);
    // Some implementations of a response finish without a `close` event.
    response.once?.('finish', sent);
  });
}

/** The metadata key of `@nestjs/graphql`, and its value for subscriptions. */
const RESOLVER_TYPE = 'graphql:resolver_type';
const SUBSCRIPTION = 'Subscription';

/** Returns true for the result of a handler of a GraphQL subscription. */
function isSubscription(value: unknown, context: ExecutionContext): value is AsyncIterable<unknown> {
  return isOfSubscription(context) && isAsyncIterable(value);
}

/**
 * Returns the value for Nest in place of the result of a handler that does not run. A GraphQL server rejects a
 * subscription without events.
 */
export function resultWithoutWork(fallback: unknown, context: ExecutionContext): unknown {
  return fallback === undefined && isOfSubscription(context) ? noEvents() : fallback;
}

async function* noEvents(): AsyncGenerator<never> {}

function isOfSubscription(context: ExecutionContext): boolean {
  if (context.getType<string>() !== 'graphql') return false;
  return Reflect.getMetadata(RESOLVER_TYPE, context.getHandler()) === SUBSCRIPTION;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return value !== null && typeof value === 'object' && Symbol.asyncIterator in value;
}

/** The events of a GraphQL subscription, which the server requests one after another. */
class SubscribedEvents implements AsyncIterableIterator<unknown> {
  /** Resolves when the handler has no more events, or when the client is gone and requests no more. */
  readonly ended: Promise<void>;
  /** A generator works while the next event is requested: under the lock, like the rest of the handler. */
  readonly #handler = new AsyncResource('SubscribedEvents');
  readonly #iterable: AsyncIterable<unknown>;
  #iterator: AsyncIterator<unknown> | undefined;
  /** Rejects each requested event. */
  readonly #asked = new Set<(error: Error) => void>();
  #error: Error | undefined;
  #end!: () => void;

  constructor(iterable: AsyncIterable<unknown>, context: ExecutionContext) {
    this.#iterable = iterable;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    // The server may not have reached the events when the client leaves.
    void this.ended.then(onDisconnect(context, () => void this.return().catch(() => {})));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<unknown>> {
    return new Promise<IteratorResult<unknown>>((resolve, reject) => {
      if (this.#error) return reject(this.#error);
      this.#asked.add(reject);
      const settled = (): boolean => this.#asked.delete(reject);
      this.#run((iterator) => iterator.next())
        .finally(settled)
        .then((result) => {
          if (result.done) this.#end();
          resolve(result);
        })
        .catch((error: Error) => {
          this.#end();
          reject(error);
        });
    });
  }

  async return(value?: unknown): Promise<IteratorResult<unknown>> {
    // A generator that waits for an event returns only when that arrives, which may be never.
    if (this.#asked.size > 0) this.#end();
    try {
      return (await this.#run(async (iterator) => iterator.return?.(value))) ?? { done: true, value };
    } finally {
      this.#end();
    }
  }

  /** Ends the events with an error that shows no resource, because no filter runs for it. */
  fail(reason: unknown): void {
    this.#error = reason instanceof LockError ? graphqlError(reason) : (reason as Error);
    for (const reject of this.#asked) reject(this.#error);
    void this.return().catch(() => {});
  }

  async #run<T>(call: (iterator: AsyncIterator<unknown>) => Promise<T>): Promise<T> {
    return this.#handler.runInAsyncScope(() => call((this.#iterator ??= this.#iterable[Symbol.asyncIterator]())));
  }
}
