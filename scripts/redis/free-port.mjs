// A port for a private server.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

// Below the range from which systems pick the local ports of outgoing connections: those would race with us for the
// port while the server starts, and again while it restarts.
const FIRST = 20_000;
const LAST = 29_999;

export async function findFreePort() {
  for (;;) {
    const port = randomInt(FIRST, LAST + 1);
    if (await isFree(port)) return port;
  }
}

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host: '127.0.0.1', port, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
