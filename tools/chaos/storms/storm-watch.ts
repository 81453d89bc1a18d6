import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { connectAdmin, insist } from '../../../test/support/redis/admin-client.js';
import { longestOf, type LongestScripts, type SlowScript } from '../world/longest-script.js';
import { ScriptWatch } from '../world/script-watch.js';

/** The time of which it is told how many connections were made in it, and how often they are counted. */
const WINDOW_MS = 100;
const LOOK_MS = 20;
/** How soon it is tried again to reach a server that is away. */
const RETRY_MS = 20;
/** The first member of a place in the queue: mode and expiry. See inspect.lua. */
const PLACE = /^ \d+ \S+ (\d+) \d+/;

/** How many came in the busiest window, where they were counted from time to time. */
export class BusiestWindow {
  #recent: { readonly from: number; readonly to: number; readonly count: number }[] = [];
  #most = 0;

  constructor(private readonly windowMs: number) {}

  /** So many came between two moments, at any time in between. */
  add(from: number, to: number, count: number): void {
    const start = to - this.windowMs;
    this.#recent = [...this.#recent, { from, to, count }].filter((one) => one.to > start);
    const within = this.#recent.map((one) => {
      const ms = one.to - one.from;
      return ms > 0 ? (one.count * (one.to - Math.max(one.from, start))) / ms : one.count;
    });
    this.#most = Math.max(this.#most, Math.round(within.reduce((sum, each) => sum + each, 0)));
  }

  get most(): number {
    return this.#most;
  }
}

/** What Redis knows of a fleet. */
export class StormWatch {
  readonly #scripts: ScriptWatch;
  readonly #admin: Redis;
  #slow: SlowScript[] = [];
  #busiest = new BusiestWindow(WINDOW_MS);
  #connected = 0;
  #isOver = false;

  constructor(private readonly port: number) {
    this.#admin = connectAdmin(port);
    const looking = connectAdmin(port);
    this.#scripts = new ScriptWatch(
      () => [looking],
      (longest) => this.#slow.push(longest),
    );
    void this.#countConnections().finally(() => looking.disconnect());
  }

  end(): void {
    this.#isOver = true;
    this.#scripts.end();
    this.#admin.disconnect();
  }

  /** From now on. */
  reset(): void {
    this.#slow = [];
    this.#busiest = new BusiestWindow(WINDOW_MS);
    this.#connected = 0;
  }

  get longestScripts(): LongestScripts {
    return longestOf(this.#slow);
  }

  /** How many connections were made: in all, and in the tenth of a second with most of them. */
  get connections(): { readonly all: number; readonly busiest: number } {
    return { all: this.#connected, busiest: this.#busiest.most };
  }

  /** How many clients hold a resource, or stand in its queue with a place that lasts until then. In a call it is its holder's. */
  async countPlaces(resources: readonly string[], untilMs: number): Promise<number> {
    const commands = resources.flatMap((resource) => [
      ['exists', `lock:{${resource}}`],
      ['zrange', `lock:{${resource}}:waiters`, '0', '-1'],
    ]);
    const replies = await insist(() => this.#admin.pipeline(commands).exec());
    return replies!.reduce((count, [, reply]) => {
      if (typeof reply === 'number') return count + reply;
      return count + (reply as string[]).filter((member) => Number(PLACE.exec(member)?.[1] ?? 0) >= untilMs).length;
    }, 0);
  }

  /**
   * Without the buffers of the connections, which grow and shrink by themselves: of 2,000 they are up to 20 MB. The least of some looks:
   * what is under way comes on top of it. In bytes.
   */
  async memory(): Promise<number> {
    const looks: number[] = [];
    for (let look = 0; look < 10; look++) {
      const info = await insist(() => this.#admin.info('memory'));
      const [used, buffers] = ['used_memory', 'mem_clients_normal'].map((name) =>
        Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)![1]),
      );
      looks.push(used! - buffers!);
      await sleep(WINDOW_MS);
    }
    return Math.min(...looks);
  }

  async keys(): Promise<string[]> {
    return insist(() => this.#admin.keys('*'));
  }

  async #countConnections(): Promise<void> {
    // It reaches Redis as soon as the others do, also while that loads its data.
    const admin = connectAdmin(this.port, { enableReadyCheck: false, retryStrategy: () => RETRY_MS });
    let connectedAt = performance.now();
    admin.on('connect', () => (connectedAt = performance.now()));
    let [last, lastRun, lastAt] = [0, '', connectedAt];
    while (!this.#isOver) {
      const info = await admin.info().catch(() => '');
      const now = performance.now();
      const all = Number(/^total_connections_received:(\d+)/m.exec(info)?.[1] ?? NaN);
      if (!Number.isNaN(all)) {
        const run = /^run_id:(\w+)/m.exec(info)![1]!;
        // A server that was started anew counts from the beginning. One try earlier, it could not be reached.
        const isNew = run !== lastRun;
        const made = isNew ? all : all - last;
        if (lastRun !== '') {
          this.#connected += made;
          this.#busiest.add(isNew ? connectedAt - RETRY_MS : lastAt, now, made);
        }
        [last, lastRun, lastAt] = [all, run, now];
      }
      await sleep(LOOK_MS);
    }
    admin.disconnect();
  }
}
