import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import { entryOf, isObject } from '../../kernel/util/objects.js';

/** The part of a Node.js response that is used here. */
interface RawResponse extends PeerConnection {
  readonly writableFinished?: boolean;
}

/** An emitter of `close` when a client disconnects: a response, a socket, a WebSocket. */
interface PeerConnection {
  readonly destroyed?: boolean;
  /** A number on a WebSocket only. */
  readonly readyState?: unknown;
  once?(event: 'close' | 'finish', listener: () => void): unknown;
  off?(event: 'close' | 'finish', listener: () => void): unknown;
}

/** The `readyState` of a WebSocket that is being closed. */
const CLOSING = 2;

/** Returns the Node.js response, on Express and on Fastify. For HTTP only. */
export function rawResponse(context: ExecutionContext): RawResponse {
  // Fastify wraps Node's response, Express extends it.
  const response = context.switchToHttp().getResponse<RawResponse & { raw?: RawResponse }>();
  return response.raw ?? response;
}

/**
 * Calls back when the client of an HTTP or GraphQL request disconnects, or when a gRPC client cancels its call or lets
 * the deadline pass; at once if this has happened already. In GraphQL, it does nothing if the context of the request
 * does not lead to a connection. Other transports report nothing, or Nest ends the subscription for them.
 *
 * @returns a function that stops listening
 */
export function onDisconnect(context: ExecutionContext, callback: () => void): () => void {
  const type = context.getType<string>();
  if (type === 'graphql') return onGraphqlDisconnect(context, callback);
  if (type === 'rpc') return onGrpcCancelled(context, callback);
  if (type !== 'http') return () => {};
  const response = rawResponse(context);
  if (response.destroyed) callback();
  else response.once?.('close', callback);
  return () => void response.off?.('close', callback);
}

function onGrpcCancelled(context: ExecutionContext, callback: () => void): () => void {
  const call = grpcCallOf(context);
  if (call?.cancelled) callback();
  else call?.once('cancelled', callback);
  return () => void call?.off('cancelled', callback);
}

/** One listener for each connection, because one GraphQL document may ask for many fields at once. */
const listeners = new WeakMap<object, Set<() => void>>();

function onGraphqlDisconnect(context: ExecutionContext, callback: () => void): () => void {
  try {
    const connection = graphqlConnection(context.getArgs());
    if (connection) return onClose(connection, callback);
  } catch {
    // A context of the application may have getters that throw.
  }
  return () => {};
}

function onClose(connection: PeerConnection, callback: () => void): () => void {
  if (connection.destroyed || Number(connection.readyState) >= CLOSING) {
    callback();
    return () => {};
  }
  const callbacks = entryOf(listeners, connection, () => {
    const waiting = new Set<() => void>();
    connection.once?.('close', () => waiting.forEach((call) => call()));
    return waiting;
  });
  callbacks.add(callback);
  return () => void callbacks.delete(callback);
}

/** The properties that the context of a GraphQL request may have. Each application makes its own. */
interface Loose {
  readonly [property: string]: Loose | undefined;
}

/** Returns the connection of a GraphQL request, if its context leads to one. */
function graphqlConnection(args: unknown[]): PeerConnection | undefined {
  // The resolver of a reference has no arguments of a field.
  const context = args[args.length === 3 ? 1 : 2];
  return isObject(context) ? candidates(context as Loose).find(isConnection) : undefined;
}

function candidates(context: Loose): readonly unknown[] {
  // Apollo and Nest: `req` and perhaps `res`. Mercurius: `reply`, over a WebSocket without a response.
  const request = context['req'] ?? context['request'] ?? context['reply']?.['request'];
  const response = context['res'] ?? context['reply'] ?? request?.['res'];
  // graphql-ws. Nest puts its context into `req`.
  const extra = context['extra'] ?? request?.['extra'];
  const rawRequest = request?.['raw'] ?? request;
  return [response?.['raw'], response, extra?.['socket'], rawRequest?.['socket']];
}

function isConnection(value: unknown): value is PeerConnection {
  return isObject(value) && typeof (value as PeerConnection).once === 'function';
}

/** Metadata of gRPC. This package does not import the class, because it does not depend on gRPC. */
interface GrpcMetadata {
  set(key: string, value: string): void;
}

/** The part of a server-side call of `@grpc/grpc-js` that is used here. */
export interface GrpcCall {
  readonly cancelled: boolean;
  readonly metadata: GrpcMetadata;
  sendMetadata(metadata: GrpcMetadata): void;
  emit(event: 'error', error: unknown): unknown;
  once(event: 'cancelled', listener: () => void): unknown;
  off(event: 'cancelled', listener: () => void): unknown;
}

/** Returns the call if the host belongs to gRPC: Nest's other transports have none. */
export function grpcCallOf(host: ArgumentsHost): GrpcCall | undefined {
  if (host.getType() !== 'rpc') return undefined;
  // Nest passes the request, the metadata and the call. To a handler of @GrpcStreamCall it passes the call first.
  return [host.getArgByIndex<unknown>(2), host.getArgByIndex<unknown>(0)].find(isGrpcCall);
}

/** Returns true if Nest leaves the answer of the call to its handler: `@GrpcStreamCall`. */
export function answersItself(host: ArgumentsHost, call: GrpcCall): boolean {
  return host.getArgByIndex<unknown>(0) === call;
}

/** Makes metadata for the answer from the entries that have a value. */
export function metadataFor(call: GrpcCall, entries: Readonly<Record<string, string | undefined>>): object {
  const metadata = new (call.metadata.constructor as new () => GrpcMetadata)();
  for (const [key, value] of Object.entries(entries)) if (value !== undefined) metadata.set(key, value);
  return metadata;
}

/** Messages of other transports have no functions, because they arrive as text. */
function isGrpcCall(value: unknown): value is GrpcCall {
  const call = value as Partial<GrpcCall> | null | undefined;
  return typeof call?.sendMetadata === 'function' && typeof call.metadata?.set === 'function';
}
