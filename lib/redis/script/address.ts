import type { Redis } from 'ioredis';
import { quote } from '../../kernel/util/quoted.js';

/** The address of a client's server as "host:port". The nodes of a cluster are known by it. */
export function hostAndPort({ options: { host = '127.0.0.1', port = 6379 } }: Redis): string {
  return `${host}:${port}`;
}

/** The parts of "host:port". An IPv6 host contains colons itself. */
export function parseHostAndPort(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}

/** Describes the server of a client for a message. */
export function describeServer({ options: { host = 'localhost', port = 6379, path, name } }: Redis): string {
  return path ?? (name ? `the primary ${quote(name)} of the sentinels` : `${host}:${port}`);
}

/** The same text for two addresses that certainly lead to one server. */
export function normalizeAddress(address: string): string {
  return address.toLowerCase().replace(/^(localhost|127\.0\.0\.1|::1):/, 'localhost:');
}
