import { finished, Stream } from 'node:stream';
import { type ExecutionContext, StreamableFile } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { rawResponse } from './client-disconnect.js';
import { isSubscription, SubscribedEvents } from './subscribed-events.js';

/**
 * Whether Nest sends the result in parts after the handler has ended: a file, a stream, an async generator, a Web
 * `Response`.
 */
function isSentInParts(value: unknown): value is object {
  if (value === null || typeof value !== 'object') return false;
  if (value instanceof StreamableFile || value instanceof Stream) return true;
  // Nest awaits a thenable, such as a query, and sends the value that it resolves to.
  if (Symbol.asyncIterator in value) return !('then' in value);
  return Object.prototype.toString.call(value) === '[object Response]';
}

/** Whether a handler that returns this may still be working when its promise has settled. */
export function isStreamedResult(value: unknown): value is object {
  return isObservable(value) || isSentInParts(value);
}

/** A result that Nest sends after the handler has ended. */
export interface Sending {
  /** What Nest sends. */
  readonly value: unknown;
  /** Resolves when everything is sent, or the client is gone. */
  readonly sent: Promise<void>;
  /** Breaks it off. */
  readonly breakOff: (reason: unknown) => void;
}

/** Returns `undefined` for a result that is sent at once. */
export function sendingOf(value: unknown, context: ExecutionContext): Sending | undefined {
  if (isSubscription(value, context)) {
    const events = new SubscribedEvents(value, context);
    return { value: events, sent: events.ended, breakOff: (reason) => events.fail(reason) };
  }
  const sent = untilSent(value, context);
  return sent && { value, sent, breakOff: (reason) => endStream(value as object, reason) };
}

/**
 * Resolves when the result of an HTTP handler is sent. That is when its stream ends, or when the response ends: the
 * client may disconnect, or an interceptor may send another answer.
 *
 * @returns `undefined` for a result that is sent at once
 */
function untilSent(value: unknown, context: ExecutionContext): Promise<void> | undefined {
  if (context.getType() !== 'http' || !isSentInParts(value)) return undefined;
  const response = rawResponse(context);
  const stream = streamOf(value);
  return new Promise((resolve) => {
    const sent = (): void => resolve();
    if (stream) finished(stream, { writable: false }, sent);
    if (response.destroyed || response.writableFinished) return sent();
    response.once?.('close', sent);
    // Some implementations of a response finish without a `close` event.
    response.once?.('finish', sent);
  });
}

/** Ends a stream that will not be read. */
export function endStream(value: object, error?: unknown): void {
  const stream = streamOf(value);
  if (stream) stream.destroy(error instanceof Error ? error : undefined);
  else if (isAsyncIterator(value)) Promise.resolve(value.return?.()).catch(() => {});
}

/** Names the result in a message, by its class. */
export function describeStream(value: object): string {
  return isObservable(value) ? 'an Observable' : `a ${value.constructor?.name || 'stream'}`;
}

function isAsyncIterator(value: object): value is AsyncIterator<unknown> {
  return Symbol.asyncIterator in value && 'next' in value;
}

type Readable = NodeJS.ReadableStream & { destroy(error?: Error): unknown };

function streamOf(value: object): Readable | undefined {
  const stream: unknown = value instanceof StreamableFile ? value.getStream() : value;
  return stream instanceof Stream ? (stream as unknown as Readable) : undefined;
}
