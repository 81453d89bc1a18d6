import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ChaosRedis } from './chaos-redis.js';

const NODES = 5;
/** With `appendfsync everysec`. */
const POWER_LOSES_MS = 1_000;
/** The excess of a quarantine after a start without data: Redis counts in whole seconds, plus a margin. */
const ROUNDING_MS = 1_200;

/** Five servers that know nothing of each other. What they log is not complete, so one that restarts grants nothing for a while. */
export class QuorumSet implements AsyncDisposable {
  readonly #dead = new Set<ChaosRedis>();

  private constructor(
    private readonly nodes: readonly ChaosRedis[],
    private readonly leaseMs: number,
  ) {}

  /**
   * Resolves when they grant locks.
   *
   * @param database where the locks are
   */
  static async start(leaseMs: number, database: number): Promise<QuorumSet> {
    const options = { persistence: 'everysec', rights: ['+info', '+config|get'], database } as const;
    const nodes = await Promise.all(Array.from({ length: NODES }, () => ChaosRedis.start(options)));
    const set = new QuorumSet(nodes, leaseMs);
    await set.untilAllVote();
    return set;
  }

  get ports(): readonly number[] {
    return this.nodes.map(({ port }) => port);
  }

  get admins(): readonly Redis[] {
    return this.nodes.map(({ admin }) => admin);
  }

  /** Their URLs, directly or at other ports. */
  urlsAt(ports: readonly number[] = this.ports): string[] {
    return this.nodes.map((node, index) => node.urlAt(ports[index]!));
  }

  /** SIGKILL to these. */
  async kill(indexes: readonly number[]): Promise<void> {
    await Promise.all(
      indexes.map(async (index) => {
        const node = this.nodes[index]!;
        await node.kill();
        this.#dead.add(node);
      }),
    );
  }

  /** Restarts the killed ones, without data. Resolves when they vote again. */
  async revive(): Promise<void> {
    if (this.#dead.size === 0) return;
    await Promise.all([...this.#dead].map((node) => node.restart({ keepData: false })));
    this.#dead.clear();
    await this.untilAllVote();
  }

  /** A power failure of this one: see {@link ChaosRedis.losePower}. */
  losePower(index: number, meanwhile: () => Promise<unknown>): Promise<void> {
    return this.nodes[index]!.losePower(meanwhile, POWER_LOSES_MS);
  }

  /** Resolves when all restarted servers vote again. */
  async untilAllVote(): Promise<void> {
    await sleep(this.leaseMs + ROUNDING_MS);
  }

  /** SIGSTOP to these. */
  async pause(indexes: readonly number[], ms: number): Promise<void> {
    await Promise.all(indexes.map((index) => this.nodes[index]!.pause(ms)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
  }
}
