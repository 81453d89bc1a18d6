import type { ServerConnection } from './server-connection.js';

/** How many keys Redis looks at in one step: little enough that nobody else waits for it. */
const KEYS_AT_ONCE = 1_000;

/** The keys of one server that match, step by step; some of them may come twice. @throws LockStoreError */
export async function* scanKeys(server: ServerConnection, pattern: string): AsyncGenerator<string[]> {
  let cursor = '0';
  do {
    const redis = server.ready();
    const [next, keys] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_AT_ONCE).catch((error: unknown) => {
      throw server.explain(error);
    });
    yield keys;
    cursor = next;
  } while (cursor !== '0');
}
