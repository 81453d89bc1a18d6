// A server that is started, killed and started again, always in the same folder.
import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inContainer } from './container.mjs';
import { asProcess } from './process.mjs';
import { ServerShell } from './server-shell.mjs';

// Longer than Redis itself waits for lagging replicas (shutdown-timeout, 10 s).
const SHUT_DOWN_MS = 15_000;
const KILL_AGAIN_MS = 500;
const CONFIG_FILE = 'server.conf';

export class KeptServer {
  folder = join(tmpdir(), `nestjs-redis-lock-${randomUUID()}`);
  pid;
  #dataFolder = join(this.folder, 'data');
  #shell;
  #signal;
  #stopped = false;

  get isRunning() {
    return this.#shell?.isRunning === true;
  }

  async start({ keepData, config, ...spec }) {
    this.#mustNotBeStopped();
    // One that is looked for on PATH is missing in the log.
    if (spec.path?.includes('/')) await access(spec.path);
    const configFile = config === undefined ? undefined : CONFIG_FILE;
    const launch = (spec.image ? inContainer : asProcess)({ ...spec, configFile }, this.#dataFolder);
    // Before there is something to remove, and before another shell lets go of it.
    const shell = new ServerShell(this.folder, launch);
    const before = this.#shell;
    this.#shell = shell;
    await before?.leaveFolder();
    if (!keepData) rmSync(this.#dataFolder, { recursive: true, force: true });
    mkdirSync(this.#dataFolder, { recursive: true });
    if (configFile !== undefined) writeFileSync(join(this.#dataFolder, configFile), config);
    this.pid = await shell.begin();
    this.#signal = launch.signal(this.pid);
  }

  async signal(name) {
    this.#mustNotBeStopped();
    if (this.isRunning) await this.#signal(name);
  }

  async kill() {
    this.#mustNotBeStopped();
    while (this.isRunning) {
      await this.#signal('SIGKILL');
      // And again: a container that is just being created cannot be killed yet.
      await this.#shell.exit(KILL_AGAIN_MS);
    }
  }

  async shutDown() {
    await this.signal('SIGCONT'); // A paused server would not receive the next signal.
    await this.signal('SIGTERM');
    await this.#shell?.exit(SHUT_DOWN_MS);
    await this.kill();
  }

  /** For good. Its folder is removed. */
  async stop() {
    this.#stopped = true;
    await this.#shell?.end();
  }

  #mustNotBeStopped() {
    if (this.#stopped) throw new Error('This Redis server was stopped');
  }
}
