// A port for a private server.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claimFile } from '../setup/claimed-file.mjs';

// Below the range from which systems pick the local ports of outgoing connections: those would race with us for the
// port while the server starts, and again while it restarts.
const FIRST = 20_000;
const LAST = 29_999;

export async function findFreePort() {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1);
    if (reservePort(port) && (await isFree(port))) return port;
  }
}

// The nodes of a cluster talk to each other on the port so far above theirs. Since Redis 7 that can be set; until then it cannot.
const BUS_OFFSET = 10_000;
// Where systems begin to pick local ports.
const FIRST_LOCAL = 32_768;

/** A port whose bus port is free as well, and no local port of anybody. */
export async function findFreeClusterPort() {
  for (;;) {
    const port = randomInt(FIRST, FIRST_LOCAL - BUS_OFFSET);
    if (reservePort(port) && (await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port;
  }
}

/** Who has which port: a server that was killed comes back on its own, which another process must not take meanwhile. */
const RESERVED = join(tmpdir(), 'redis-lock-test-ports');

/** Keeps the port for this process, until it ends. @returns whether no other one has it */
export function reservePort(port) {
  try {
    return claimFile(join(RESERVED, String(port)));
  } catch {
    return true; // a folder of another user, say
  }
}

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host: '127.0.0.1', port, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
