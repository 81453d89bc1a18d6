import type { ExecutionContext } from '@nestjs/common';

/** The part of a Node response that is needed here. */
interface RawResponse {
  readonly destroyed: boolean;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

/** Calls back when the client of an HTTP request goes away, or has gone before; gives the function that stops listening. */
export function onDisconnect(context: ExecutionContext, callback: () => void): () => void {
  if (context.getType() !== 'http') return () => {};
  // Fastify wraps Node's response, Express extends it.
  const response = context.switchToHttp().getResponse<Partial<RawResponse> & { raw?: RawResponse }>();
  const raw = response.raw ?? response;
  if (raw.destroyed) callback();
  else raw.once?.('close', callback);
  return () => void raw.off?.('close', callback);
}
