import type { Cluster, Redis } from 'ioredis';
import { inRootContext } from '../../core/util/async-contexts.js';

/**
 * Makes every connection of a client, also those that it makes anew by itself, in the async context of no caller. A socket keeps the
 * context in which it was made, and runs its listeners there: that of the request during which a module was loaded, or a command failed.
 */
export function connectInRootContext(client: Redis | Cluster): void {
  const connect: () => Promise<void> = client.connect.bind(client);
  // ioredis calls it too, when a connection has ended.
  client.connect = () => inRootContext(connect);
}
