import type { Redis } from 'ioredis';

/**
 * ioredis 5 calls a connection ready that broke in the middle of its handshake, and never makes another one (its issue 2099;
 * version 6 does not). Takes that word back, so that the next attempt, which is due already, is made. To be called before
 * anybody else listens to the client.
 */
export function mendBrokenHandshake(client: Redis): void {
  client.on('ready', () => {
    if (client.stream.destroyed) client.status = 'reconnecting';
  });
}
