// The keeper: a process that owns one Redis server for the process that forked it (keeper-channel.mjs). The channel
// between the two closes when that process ends, whatever ended it, SIGKILL included. The keeper then kills the server,
// removes its folder, and ends too.
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { launchContainer } from './container.mjs';
import { launchProcess } from './process.mjs';

// Longer than Redis itself waits for lagging replicas (shutdown-timeout, 10 s).
const SHUT_DOWN_MS = 15_000;
const KILL_AGAIN_MS = 500;
const CONFIG_FILE = 'server.conf';

const folder = mkdtempSync(join(tmpdir(), 'nestjs-redis-lock-'));
const dataFolder = join(folder, 'data');

/** @type {{ signal(name: string): unknown, exited: Promise<void> } | undefined} */
let server;

const verbs = {
  async start(spec) {
    if (!spec.keepData) rmSync(dataFolder, { recursive: true, force: true });
    mkdirSync(dataFolder, { recursive: true });
    if (spec.config !== undefined) writeFileSync(join(dataFolder, CONFIG_FILE), spec.config);
    const configFile = spec.config === undefined ? undefined : CONFIG_FILE;
    const log = openSync(join(folder, 'server.log'), 'w');
    const { child, signal } = (spec.image ? launchContainer : launchProcess)(
      { ...spec, configFile },
      { dataFolder, log },
    );
    closeSync(log); // the child has its own
    const exited = new Promise((resolve) => child.once('close', resolve));
    server = { signal, exited }; // at once: the channel may close before it has started
    void exited.then(() => {
      server = undefined;
      tell({ exited: child.pid ?? null });
    });
    await once(child, 'spawn');
    return { pid: child.pid, folder };
  },
  async signal(name) {
    await server?.signal(name);
  },
  async kill() {
    while (server !== undefined) {
      const { signal, exited } = server;
      await signal('SIGKILL');
      // And again: a container that is just being created cannot be killed yet.
      await Promise.race([exited, sleep(KILL_AGAIN_MS)]);
    }
  },
  async shutDown() {
    await server?.signal('SIGCONT'); // a paused server would not hear the next one
    await server?.signal('SIGTERM');
    await Promise.race([server?.exited, sleep(SHUT_DOWN_MS)]);
    await verbs.kill();
  },
};

function tell(message) {
  if (process.connected) process.send(message, () => undefined);
}

async function end() {
  await verbs.kill().catch(() => undefined);
  rmSync(folder, { recursive: true, force: true });
  process.exit();
}

async function answer({ id, verb, argument }) {
  try {
    tell({ id, result: await verbs[verb](argument) });
  } catch (error) {
    tell({ id, error: error.message });
  }
}

process.on('message', (question) => void answer(question));
for (const event of ['disconnect', 'SIGINT', 'SIGTERM', 'SIGHUP']) process.once(event, () => void end());
if (!process.connected) void end(); // it was over before we listened
