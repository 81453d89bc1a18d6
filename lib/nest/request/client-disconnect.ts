import type { ExecutionContext } from '@nestjs/common';

/** The part of a Node.js response that is needed here. */
interface RawResponse {
  readonly destroyed?: boolean;
  readonly writableFinished?: boolean;
  once?(event: 'close' | 'finish', listener: () => void): unknown;
  off?(event: 'close' | 'finish', listener: () => void): unknown;
}

/** Returns the Node.js response, on Express and on Fastify. For HTTP only. */
export function rawResponse(context: ExecutionContext): RawResponse {
  // Fastify wraps Node's response, Express extends it.
  const response = context.switchToHttp().getResponse<RawResponse & { raw?: RawResponse }>();
  return response.raw ?? response;
}

/**
 * Calls back when the client of an HTTP request disconnects, or at once if it already has.
 *
 * @returns a function that stops listening
 */
export function onDisconnect(context: ExecutionContext, callback: () => void): () => void {
  if (context.getType() !== 'http') return () => {};
  const response = rawResponse(context);
  if (response.destroyed) callback();
  else response.once?.('close', callback);
  return () => void response.off?.('close', callback);
}
