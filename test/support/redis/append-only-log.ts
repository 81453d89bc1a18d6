import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisServer } from './redis-server.js';

/** The file that a server with an append-only file writes to now. To cut its end is a power failure. */
export function newestLogOf(server: Pick<RedisServer, 'folder'>): string {
  const folder = join(server.folder, 'data', 'appendonlydir');
  const names = readdirSync(folder).filter((name) => name.endsWith('.incr.aof'));
  return join(folder, names.sort().at(-1)!);
}
