import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { atExit } from '../../../test/support/process/at-exit.js';
import { programOf } from '../../../test/support/process/program.js';
import { TcpProxy } from '../../../test/support/network/tcp-proxy.js';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import { HistoryFolder } from '../history/history-folder.js';
import type { History } from '../history/history.js';
import type { Saying } from '../history/history-log.js';
import type { ChaosRedis } from '../servers/chaos-redis.js';

const MAIN = new URL('storm-process-main.ts', import.meta.url);
const KEPT_OUTPUT = 4_000;

/** How many there are, and what they do. */
export interface StormSize {
  readonly processes: number;
  /** Of each process. */
  readonly clients: number;
  /** Each client waits for each of them. */
  readonly resources: number;
  readonly leaseMs: number;
  /** How long each of them is held: what Redis has to do, apart from waiting. */
  readonly holdMs: number;
}

/** What a process is told when it starts (the environment variable STORM_PROCESS, as JSON). */
export interface StormSetup extends Omit<StormSize, 'processes' | 'resources'> {
  readonly name: string;
  readonly connection: string;
  readonly resources: readonly string[];
  readonly history: string;
}

/** What a process tells the harness. */
export type StormMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'granted'; readonly resource: string }
  | { readonly type: 'failed'; readonly why: string };

/** Many clients in several processes. The network of every second process can be cut. */
export class StormFleet implements AsyncDisposable {
  readonly resources: readonly string[];
  /** How often each resource was granted so far. */
  readonly grants = new Map<string, number>();
  readonly failures: string[] = [];
  readonly #folder = new HistoryFolder();
  readonly #log = this.#folder.logOf('chaos');
  readonly #children: ChildProcess[] = [];
  readonly #proxies: TcpProxy[] = [];
  #output = '';

  private constructor(
    private readonly redis: ChaosRedis,
    readonly size: StormSize,
  ) {
    this.resources = Array.from({ length: size.resources }, (_, index) => `resource-${index}`);
  }

  /** Their processes are there, and do nothing yet. */
  static async load(redis: ChaosRedis, size: StormSize): Promise<StormFleet> {
    const fleet = new StormFleet(redis, size);
    const program = programOf(MAIN);
    await Promise.all(
      fleet.names.map(async (name, index) => {
        const proxy = index % 2 === 1 ? await TcpProxy.start(redis.port) : undefined;
        if (proxy) fleet.#proxies.push(proxy);
        await fleet.#load(program, name, proxy ? redis.urlAt(proxy.port) : redis.url);
      }),
    );
    return fleet;
  }

  /** Of the processes. */
  get names(): string[] {
    return Array.from({ length: this.size.processes }, (_, index) => `p${index + 1}`);
  }

  get clients(): number {
    return this.size.processes * this.size.clients;
  }

  get places(): number {
    return this.clients * this.size.resources;
  }

  /** What they and this process wrote that nobody expects. */
  get output(): string {
    return this.#output;
  }

  /** All clients start, at once. */
  start(): void {
    for (const child of this.#children) child.send('start');
  }

  /** For so long nothing arrives at every second process, or from it. What was sent arrives afterwards, as TCP has it. */
  async cutHalf(cut: () => Promise<unknown>): Promise<void> {
    for (const proxy of this.#proxies) {
      proxy.blackHole('toServer');
      proxy.blackHole('toClient');
    }
    await cut();
    for (const proxy of this.#proxies) proxy.heal();
  }

  say(saying: Saying): void {
    this.#log.say(saying);
  }

  /** Kills them, and reads what they did. */
  async end(): Promise<History> {
    await this.#kill();
    this.#log.say({ type: 'closing', at: machineNow() });
    return this.#folder.readSoFar();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kill();
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    this.#folder[Symbol.dispose]();
  }

  async #kill(): Promise<void> {
    await Promise.all(
      this.#children.splice(0).map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill('SIGKILL');
        await once(child, 'close');
      }),
    );
  }

  async #load(program: string, name: string, connection: string): Promise<void> {
    const { clients, leaseMs, holdMs } = this.size;
    const history = this.#folder.fileOf(name);
    const setup: StormSetup = { name, connection, clients, leaseMs, holdMs, resources: this.resources, history };
    const child = fork(program, {
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '', STORM_PROCESS: JSON.stringify(setup) },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#children.push(child);
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on('data', (chunk: Buffer) => (this.#output = (this.#output + String(chunk)).slice(-KEPT_OUTPUT)));
    }
    child.once(
      'close',
      atExit(() => child.kill('SIGKILL')),
    );
    const ready = new Promise<void>((resolve, reject) => {
      child.on('message', (message: StormMessage) => {
        if (message.type === 'ready') resolve();
        else if (message.type === 'failed') this.failures.push(message.why);
        else this.grants.set(message.resource, (this.grants.get(message.resource) ?? 0) + 1);
      });
      child.once('close', () => reject(new Error(`A process of the storm ended by itself:\n${this.#output}`)));
    });
    await ready;
  }
}
