// @ts-check
// Provides PostgreSQL for the demo if none is installed: PGlite, which runs in one process, in memory. It listens on
// the loopback, so that each instance of the shop connects with `pg`, as to any other PostgreSQL.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { PGlite } from '@electric-sql/pglite';
import { fence } from 'nestjs-redis-lock/fence';

/** The migration of the application. */
export const MIGRATION = `${fence.schema('postgres')}
CREATE TABLE closings (
  id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token     BIGINT NOT NULL,
  closed_by TEXT NOT NULL
);`;

/**
 * The maximum time for which a connection may leave its transaction open. A stopped instance would keep all others
 * waiting.
 */
const IDLE_MS = 3_000;

/** AuthenticationOk, ReadyForQuery. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
const SYNC = 0x53;
const QUERY = 0x51;
const TERMINATE = 0x58;

/**
 * With the tables of the books. Connections that come before it is ready wait.
 *
 * @param {string} [data] the file of a data folder to begin with: to make one takes some seconds
 * @returns {Promise<{ url: string, stop(): Promise<void> }>}
 */
export async function startPostgres(data) {
  const opening = open(data);
  /** PGlite has one session: a connection has it until its transaction ends. */
  let turn = Promise.resolve();
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();

  /** @param {import('node:net').Socket} socket */
  async function serve(socket) {
    /** @type {(() => void) | undefined} */
    let endTurn;
    /** @type {NodeJS.Timeout | undefined} */
    let idle;
    const db = await opening;
    try {
      for await (const messages of messagesOf(socket)) {
        clearTimeout(idle);
        endTurn ??= await begin();
        const reply = await db.execProtocolRaw(messages);
        socket.write(reply);
        // The last byte of ReadyForQuery: I is idle, T and E are in a transaction.
        if (reply.at(-1) !== 0x49) {
          idle = setTimeout(() => socket.destroy(), IDLE_MS);
          continue;
        }
        endTurn();
        endTurn = undefined;
      }
    } catch {
      // The instance was killed.
    } finally {
      clearTimeout(idle);
      if (endTurn) await db.exec('ROLLBACK').finally(endTurn);
      socket.destroy();
    }
  }

  async function begin() {
    const last = turn;
    /** @type {() => void} */
    let end = () => {};
    turn = new Promise((resolve) => (end = resolve));
    await last;
    return end;
  }

  const server = createServer((socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
    void serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await turn;
      await (await opening).close();
    },
  };
}

/** @param {string} [data] */
async function open(data) {
  const db = await PGlite.create(data ? { loadDataDir: new Blob([await readFile(data)]) } : {});
  await db.exec(MIGRATION);
  return db;
}

/**
 * Yields all messages up to one that PostgreSQL answers with ReadyForQuery.
 *
 * @param {import('node:net').Socket} socket
 */
async function* messagesOf(socket) {
  let isGreeted = false;
  let rest = Buffer.alloc(0);
  for await (const chunk of socket) {
    rest = Buffer.concat([rest, chunk]);
    for (let at = 0; ;) {
      // Only the first message has no type.
      const lengthAt = isGreeted ? at + 1 : at;
      if (rest.length < lengthAt + 4) break;
      const end = lengthAt + rest.readInt32BE(lengthAt);
      if (rest.length < end) break;
      const type = rest[at];
      if (isGreeted && type === TERMINATE) return;
      if (!isGreeted) {
        isGreeted = true;
        socket.write(WELCOME);
      } else if (type !== SYNC && type !== QUERY) {
        at = end;
        continue;
      } else {
        yield rest.subarray(0, end);
      }
      rest = rest.subarray(end);
      at = 0;
    }
  }
}
