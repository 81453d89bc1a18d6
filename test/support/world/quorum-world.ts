import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockDefaults } from '../../../lib/kernel/api/lock-options.js';
import { QuorumLockStore } from '../../../lib/quorum/quorum-lock-store.js';
import { type Distance, DistantStore } from './distant-store.js';
import { FakeClock } from './fake-clock.js';
import { listenTogether } from './listen-together.js';
import { SeededRandom } from './seeded-random.js';
import type { ProcessClock } from '../simulation/simulated-process.js';

export interface QuorumWorldOptions {
  readonly nodes?: number;
  readonly seed?: number;
  readonly latencyMs?: (random: SeededRandom) => number;
  readonly nodeTimeoutMs?: number;
  readonly fencing?: boolean;
  /** The lead of each node's wall clock. */
  readonly skewsMs?: readonly number[];
}

/** One process, and its connection to each node. */
export interface QuorumClient {
  readonly store: QuorumLockStore;
  readonly locks: LockClient;
  readonly links: readonly DistantStore[];
}

/** Independent nodes at a distance, and processes that lock by their majority; all of it on a clock that the test moves. */
export class QuorumWorld {
  readonly clock = new FakeClock();
  readonly random: SeededRandom;
  readonly distances: Distance[];
  readonly servers: MemoryServer[];
  readonly clients: QuorumClient[] = [];

  constructor(private readonly options: QuorumWorldOptions = {}) {
    const { nodes = 3, seed = 1, latencyMs = () => 1, skewsMs = [] } = options;
    this.random = new SeededRandom(seed);
    const latency = () => latencyMs(this.random);
    this.distances = Array.from({ length: nodes }, () => ({ latencyMs: latency }));
    this.servers = Array.from({ length: nodes }, (_, index) => this.#server(skewsMs[index]));
  }

  get majority(): number {
    return Math.floor(this.servers.length / 2) + 1;
  }

  /** @param process the client uses its clock, and stalls with it */
  client(defaults: Partial<LockDefaults> = {}, process?: ProcessClock): QuorumClient {
    const { random } = this;
    const clock = process ?? this.clock;
    const { nodeTimeoutMs = 50, fencing } = this.options;
    const instanceId = `process-${this.clients.length + 1}`;
    const clientId = `${instanceId}/x`;
    const links = this.servers.map((server, index) => {
      const inner = new MemoryLockStore({ instanceId, clientId, server });
      return new DistantStore(inner, this.clock, this.distances[index]!, () => random.fraction(), process);
    });
    const nodes = links.map((store, index) => ({ name: 'abcdefghi'[index]!, store }));
    const store = new QuorumLockStore({ nodes, clock, random, nodeTimeoutMs, fencing: fencing ?? false });
    listenTogether(store);
    const locks = new LockClient({ store, clock, random, defaults });
    const client = { store, locks, links };
    this.clients.push(client);
    return client;
  }

  /** The nodes with these numbers go down, and the others are up. */
  down(...nodes: number[]): void {
    this.distances.forEach((distance, index) => (distance.isDown = nodes.includes(index)));
  }

  stop(...nodes: number[]): void {
    for (const node of nodes) this.distances[node]!.isStopped = true;
  }

  resume(...nodes: number[]): void {
    for (const node of nodes) {
      this.distances[node]!.isStopped = false;
      for (const { links } of this.clients) links[node]!.resume();
    }
  }

  /** Everything is forgotten there. */
  forget(node: number): void {
    const server = this.servers[node]!;
    for (const resource of server.resources()) {
      server.lose(resource);
      server.redis.del(server.keys.waiters(resource));
    }
  }

  /** The number of nodes that hold the lock of a resource, by owner; an owner has another name for each attempt. */
  votes(resource: string): Map<string, number> {
    const votes = new Map<string, number>();
    for (const server of this.servers) {
      for (const { owner } of server.members(resource)) {
        const base = owner.replace(/\.\d+$/, '');
        votes.set(base, (votes.get(base) ?? 0) + 1);
      }
    }
    return votes;
  }

  get isEmpty(): boolean {
    return this.servers.every((server) => server.isEmpty);
  }

  /** Time passes until the promise settles. @throws when that takes longer */
  async until<T>(promise: Promise<T>, atMostMs = 60_000): Promise<T> {
    let isSettled = false;
    const end = this.clock.now() + atMostMs;
    promise.then(
      () => (isSettled = true),
      () => (isSettled = true),
    );
    await this.clock.advance(0);
    while (!isSettled) {
      if (this.clock.now() >= end) throw new Error(`nothing came of it within ${atMostMs} ms`);
      await this.clock.advance(1);
    }
    return promise;
  }

  #server(skewMs = 0): MemoryServer {
    const { clock } = this;
    return new MemoryServer({
      now: () => clock.now(),
      wallNow: () => clock.wallNow() + skewMs,
      setTimer: (callback, delayMs) => clock.setTimer(callback, delayMs),
    });
  }
}
