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
// Systems pick local ports from here on.
const FIRST_LOCAL = 32_768;

/** Finds a port whose bus port is free as well, outside of the range of local ports. */
export async function findFreeClusterPort() {
  for (;;) {
    const port = randomInt(FIRST, FIRST_LOCAL - BUS_OFFSET);
    if (reservePort(port) && (await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port;
  }
}

/**
 * Reserved ports by process: a server that was killed returns to its port, which another process must not take in
 * between.
 */
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
