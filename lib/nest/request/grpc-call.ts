import type { ArgumentsHost } from '@nestjs/common';

/** Metadata of gRPC. A class that this package does not import, because it does not depend on gRPC. */
interface GrpcMetadata {
  set(key: string, value: string): void;
}

/** The part of a call of `@grpc/grpc-js`, on the side of the server, that is needed here. */
export interface GrpcCall {
  readonly cancelled: boolean;
  /** What the client sent. */
  readonly metadata: GrpcMetadata;
  sendMetadata(metadata: GrpcMetadata): void;
  emit(event: 'error', error: unknown): unknown;
  once(event: 'cancelled', listener: () => void): unknown;
  off(event: 'cancelled', listener: () => void): unknown;
}

/** Returns the call if the host is one of gRPC: Nest's other transports have none. */
export function grpcCallOf(host: ArgumentsHost): GrpcCall | undefined {
  if (host.getType() !== 'rpc') return undefined;
  // Nest passes the request, the metadata and the call. To a handler of @GrpcStreamCall it passes the call first.
  return [host.getArgByIndex<unknown>(2), host.getArgByIndex<unknown>(0)].find(isGrpcCall);
}

/** Whether Nest leaves the answer of the call to its handler: `@GrpcStreamCall`. */
export function answersItself(host: ArgumentsHost, call: GrpcCall): boolean {
  return host.getArgByIndex<unknown>(0) === call;
}

/** Makes metadata for the answer, of the entries that have a value. */
export function metadataFor(call: GrpcCall, entries: Readonly<Record<string, string | undefined>>): object {
  const metadata = new (call.metadata.constructor as new () => GrpcMetadata)();
  for (const [key, value] of Object.entries(entries)) if (value !== undefined) metadata.set(key, value);
  return metadata;
}

/** A message of another transport has no functions: it came as text. */
function isGrpcCall(value: unknown): value is GrpcCall {
  const call = value as Partial<GrpcCall> | null | undefined;
  return typeof call?.sendMetadata === 'function' && typeof call.metadata?.set === 'function';
}
