import { finished, Stream } from 'node:stream';
import { type ExecutionContext, StreamableFile } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { rawResponse } from './client-disconnect.js';

/** What Nest sends bit by bit, after the handler has ended: a file, a stream, an async generator, a `Response` of the web. */
export function isSentInBits(value: unknown): value is object {
  if (value === null || typeof value !== 'object') return false;
  if (value instanceof StreamableFile || value instanceof Stream) return true;
  // A thenable, such as a query, stands for what it resolves to.
  if (Symbol.asyncIterator in value) return !('then' in value);
  return Object.prototype.toString.call(value) === '[object Response]';
}

/** What a handler may return whose work is not over when its promise settles. */
export function isStreamedResult(value: unknown): value is object {
  return isObservable(value) || isSentInBits(value);
}

/**
 * Resolves when what a handler of HTTP has returned is sent: its stream has ended, or else the response, for the client may
 * leave, or an interceptor may answer something else. `undefined` for what is sent at once.
 */
export function untilSent(value: unknown, context: ExecutionContext): Promise<void> | undefined {
  if (context.getType() !== 'http' || !isSentInBits(value)) return undefined;
  const response = rawResponse(context);
  const stream = streamOf(value);
  return new Promise((resolve) => {
    const sent = (): void => resolve();
    if (stream) finished(stream, { writable: false }, sent);
    if (response.destroyed || response.writableFinished) return sent();
    response.once?.('close', sent);
    // Not every implementation of a response is closed as well.
    response.once?.('finish', sent);
  });
}

/** Ends what nobody is going to read. */
export function endStream(value: object, error?: unknown): void {
  streamOf(value)?.destroy(error instanceof Error ? error : undefined);
}

/** A class name for messages. */
export function describeStream(value: object): string {
  return isObservable(value) ? 'an Observable' : `a ${value.constructor?.name || 'stream'}`;
}

type Readable = NodeJS.ReadableStream & { destroy(error?: Error): unknown };

function streamOf(value: object): Readable | undefined {
  const stream: unknown = value instanceof StreamableFile ? value.getStream() : value;
  return stream instanceof Stream ? (stream as unknown as Readable) : undefined;
}
