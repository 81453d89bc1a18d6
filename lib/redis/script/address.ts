import type { Redis } from 'ioredis';
import { quote } from '../../core/util/quoted.js';

/** "host:port", as a node of a cluster is known by. */
export function addressOf({ options: { host = '127.0.0.1', port = 6379 } }: Redis): string {
  return `${host}:${port}`;
}

/** The parts of "host:port". An address of IPv6 has colons of its own. */
export function parseAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}

/** Where a client connects to, for people. */
export function placeOf({ options: { host = 'localhost', port = 6379, path, name } }: Redis): string {
  return path ?? (name ? `the primary ${quote(name)} of the sentinels` : `${host}:${port}`);
}
