import { LockError, LockUnavailableError } from '../../lib/kernel/api/errors.js';
import type { Lease } from '../../lib/kernel/api/lease.js';
import type { AcquireReply, LockOwner, LockStore } from '../../lib/kernel/store/lock-store.js';
import type { PushedGrant, StoreListener } from '../../lib/kernel/store/message-health.js';
import { Deferred } from '../../lib/kernel/util/promises.js';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store.js';
import { runs } from '../support/simulation/runs.js';
import { ProcessClock } from '../support/simulation/simulated-process.js';
import { FakeClock } from '../support/world/fake-clock.js';
import { type QuorumClient, QuorumWorld } from '../support/world/quorum-world.js';
import { SeededRandom } from '../support/world/seeded-random.js';

const LEASE_MS = 300;

const ROUNDS = 6;
const SEEDS = runs(15, 8);

interface Faults {
  /** `true` if nodes lose replies and get commands twice. */
  readonly isLossy?: boolean;
  readonly nodes: number;
  readonly seed: number;
}

/** Runs processes that lock repeatedly while a minority of the nodes goes down, stalls and recovers. */
async function live({ nodes, seed, isLossy = false }: Faults) {
  const world = new QuorumWorld({
    nodes,
    seed,
    fencing: true,
    nodeTimeoutMs: 20,
    latencyMs: (random) => 0.2 + 4 * random.fraction() ** 3,
    skewsMs: [0, 5_000, -3_000, 60, 0],
  });
  const { clock, random } = world;
  if (isLossy) for (const distance of world.distances) Object.assign(distance, { replyLoss: 0.03, doubled: 0.05 });
  const clients = Array.from({ length: 4 }, () => world.client({ leaseMs: LEASE_MS, waitMs: 60_000 }));
  const held = new Set<Lease>();
  const tokens: number[] = [];
  const section = async ({ locks }: QuorumClient): Promise<void> => {
    const lease = await locks.acquire('stock');
    if ([...held].some((other) => other.isHeld())) throw new Error(`seed ${seed}: granted twice`);
    held.add(lease);
    tokens.push(lease.fencingToken);
    await new Promise<void>((resolve) => clock.setTimer(resolve, 20 * random.fraction()));
    const wasHeld = lease.isHeld();
    held.delete(lease);
    await lease.release().catch((error: unknown) => {
      if (!(error instanceof LockUnavailableError)) throw error;
    });
    if (wasHeld) await new Promise<void>((resolve) => clock.setTimer(resolve, 5 * random.fraction()));
  };
  const run = async (client: QuorumClient): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) await section(client);
  };
  let isOver = false;
  const trouble = (): void => {
    world.resume(...world.servers.keys());
    const minority = nodes - world.majority;
    const victims = [...world.servers.keys()].sort(() => random.fraction() - 0.5).slice(0, minority);
    world.down();
    if (isOver) return;
    if (random.fraction() < 0.5) world.down(...victims);
    else world.stop(...victims);
    clock.setTimer(trouble, 30 + 100 * random.fraction());
  };
  trouble();
  await world.until(Promise.all(clients.map(run)), 30_000);
  isOver = true;
  await clock.advance(200);
  return { world, tokens };
}

/** Stalls any number of nodes and of processes for up to two leases; nothing is lost. Returns the number of grants. */
async function suffer(seed: number): Promise<number> {
  const latencyMs = (random: SeededRandom) => 0.2 + 4 * random.fraction() ** 3;
  const fencing = seed % 3 === 0;
  const world = new QuorumWorld({ nodes: seed % 2 === 0 ? 3 : 5, seed, nodeTimeoutMs: 20, latencyMs, fencing });
  const { clock, random } = world;
  const upTo = (limit: number): number => limit * random.fraction();
  const processes = Array.from({ length: 4 }, () => new ProcessClock(clock, Math.floor(upTo(1e6)), 1));
  const clients = processes.map((process) => world.client({ leaseMs: LEASE_MS, waitMs: 4 * LEASE_MS }, process));
  let holder: Lease | undefined;
  let largest = 0;
  let grants = 0;
  const enter = (lease: Lease): void => {
    if (holder !== lease && holder?.isHeld()) throw new Error(`seed ${seed}, at ${clock.now()}: granted twice`);
    if (fencing) expect([seed, lease.fencingToken >= largest]).toEqual([seed, true]);
    largest = lease.fencingToken;
    holder = lease;
    grants++;
  };
  const work = async (index: number): Promise<void> => {
    const { locks } = clients[index]!;
    const pauseMs = (ms: number) => new Promise<void>((resolve) => processes[index]!.setTimer(resolve, ms));
    for (let round = 0; round < 2 * ROUNDS; round++) {
      try {
        const kind = Math.floor(upTo(4));
        if (kind === 0) {
          await locks.using('stock', { mode: 'reentrant' }, async (lease) => {
            enter(lease);
            await pauseMs(upTo(20));
            await locks.using('stock', { mode: 'reentrant' }, () => pauseMs(upTo(20)));
          });
          continue;
        }
        const lease = await locks.acquire('stock', kind === 1 ? { waitMs: upTo(LEASE_MS) } : {});
        enter(lease);
        await pauseMs(upTo(20));
        await lease.release();
      } catch (error) {
        if (!(error instanceof LockError)) throw error;
      }
    }
  };
  let isOver = false;
  const trouble = (): void => {
    world.resume(...world.servers.keys());
    for (const process of processes) process.continue();
    if (isOver) return;
    const unlucky = <T>(all: readonly T[]): T[] => all.filter(() => upTo(1) < 0.4);
    world.stop(...unlucky([...world.servers.keys()]));
    for (const process of unlucky(processes)) process.stop();
    clock.setTimer(trouble, upTo(upTo(2 * LEASE_MS)));
  };
  trouble();
  await world.until(Promise.all(clients.map((_, index) => work(index))), 60_000);
  isOver = true;
  await clock.advance(6 * LEASE_MS);
  expect(world.isEmpty).toBe(true);
  return grants;
}

describe('a minority of the nodes that fails, now these and now those', () => {
  it.each([3, 5])('never grants twice, and tokens always grow (%i nodes)', async (nodes) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { world, tokens } = await live({ nodes, seed });
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      await world.clock.advance(2 * LEASE_MS);
      expect(world.isEmpty).toBe(true);
    }
  });

  it('nor where replies are lost and commands arrive twice', async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { tokens } = await live({ nodes: 5, seed, isLossy: true });
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    }
  });
});

describe('any number of blocked nodes and processes', () => {
  it('never grants twice, whatever takes over, re-enters or gives up', async () => {
    let grants = 0;
    for (let seed = 1; seed <= SEEDS; seed++) grants += await suffer(seed);
    expect(grants).toBeGreaterThan(10 * SEEDS);
  });
});

const ANNA: LockOwner = { resource: 'stock', id: 'process-1/x/1', mode: 'exclusive' };

/** A node that replies on request of the test. */
class SlowNode {
  readonly asked: { readonly owner: string; readonly reply: Deferred<AcquireReply> }[] = [];
  readonly released: string[] = [];
  gotBack = false;
  #listener: StoreListener | undefined;
  /** A request to give a vote back never gets a reply. */
  readonly store = {
    instanceId: 'process-1',
    clientId: 'process-1/x',
    acquire: ({ id: owner }: LockOwner) => this.#ask(owner),
    rotate: () => this.#takeBack(),
    release: ({ id: owner }: LockOwner) => {
      this.released.push(owner);
      return new Promise(() => {});
    },
    listen: (listener: StoreListener) => (this.#listener = listener),
    close: async () => {},
  } as unknown as LockStore;

  #ask(owner: string): Promise<AcquireReply> {
    const reply = new Deferred<AcquireReply>();
    this.asked.push({ owner, reply });
    return reply.promise;
  }

  #takeBack(): Promise<never> {
    this.gotBack = true;
    return new Promise(() => {});
  }

  push(sentAt: number): void {
    const isFor = (owner: string): boolean => owner === ANNA.id;
    this.#listener!.granted({ resource: ANNA.resource, fencingToken: 7, sentAt, isFor });
  }
}

function world() {
  const clock = new FakeClock();
  const nodes = Array.from({ length: 5 }, () => new SlowNode());
  const members = nodes.map(({ store }, index) => ({ name: 'abcde'[index]!, store }));
  const store = new QuorumLockStore({ nodes: members, clock, random: new SeededRandom(1), nodeTimeoutMs: 1_000 });
  const pushed: PushedGrant[] = [];
  store.listen({ granted: (grant) => pushed.push(grant), reconnected: () => {} });
  const ask = (who = ANNA) => store.acquire(who, LEASE_MS, { sentAt: clock.now(), maxWaiters: 100 });
  const answer = async (round: number, reply: AcquireReply, ...indexes: number[]): Promise<void> => {
    for (const index of indexes) nodes[index]!.asked[round]!.reply.resolve(reply);
    await clock.advance(0);
  };
  return { clock, nodes, pushed, ask, answer };
}

describe('a vote that was passed on before its question was answered by the others', () => {
  it('does not count for how long the lock is held', async () => {
    const { clock, nodes, pushed, ask, answer } = world();
    const first = ask();
    const firstAt = clock.now();
    await answer(0, { status: 'granted', fencingToken: 7 }, 1);
    await answer(0, { status: 'queued', ttlMs: 100 }, 0, 2, 3, 4);
    expect(await first).toMatchObject({ status: 'queued' });

    await clock.advance(0.1);
    let outcome: AcquireReply | undefined;
    void ask().then((reply) => (outcome = reply));
    // A votes for it as well, and as that is not enough, A and B get their votes back.
    await answer(1, { status: 'granted', fencingToken: 7 }, 0);
    await clock.advance(50);
    expect(nodes[0]!.gotBack).toBe(true);
    // The others have made it the holder when the one before it left: by what it had asked first.
    for (const node of nodes.slice(2)) node.push(firstAt);
    expect(pushed).toMatchObject([{ sentAt: firstAt }]);

    // Two of them are held for as long as the second request says. The vote of A belongs to another owner now.
    await answer(1, { status: 'granted', fencingToken: 7 }, 2, 3);
    expect(outcome).toBeUndefined();
    await answer(1, { status: 'granted', fencingToken: 7 }, 4);
    expect(outcome).toEqual({ status: 'granted', fencingToken: 7 });
  });
});

describe('a process that was blocked for longer than its places in the queues last', () => {
  it('asks by a new id: the release of what the old id has may be executed after the next grant', async () => {
    const { clock, nodes, ask, answer } = world();
    const first = ask();
    await answer(0, { status: 'queued', ttlMs: 100 }, 0, 1, 2, 3, 4);
    await first;
    await clock.advance(LEASE_MS + 100);
    void ask({ ...ANNA, id: 'process-1/x/2' });
    // A late grant is returned if the process no longer knows its attempt.
    nodes[0]!.push(clock.now() - LEASE_MS);
    await clock.advance(0);
    expect(nodes[0]!.released).toEqual([ANNA.id]);

    void ask();
    await clock.advance(0);
    const { owner } = nodes[0]!.asked.at(-1)!;
    expect(nodes[0]!.released).not.toContain(owner);
    expect(owner).toContain(ANNA.id);
  });
});

describe('messages that are faster than the replies to the questions that they owe their grants to', () => {
  it('stand: the replies are about the time before', async () => {
    const { clock, nodes, pushed, ask, answer } = world();
    await clock.advance(0.5);
    const reply = ask();
    await clock.advance(1);
    for (const node of nodes.slice(0, 3)) node.push(Math.floor(clock.now() - 1)); // the queue counts whole milliseconds
    expect(pushed).toHaveLength(1);
    await answer(0, { status: 'queued', ttlMs: 100 }, 0, 1, 2);
    expect(await reply).toMatchObject({ status: 'queued' });
    await clock.advance(LEASE_MS);
    // Nothing was passed on, and nothing released.
    expect(nodes.map(({ gotBack, released }) => ({ gotBack, released }))).toEqual(
      nodes.map(() => ({ gotBack: false, released: [] })),
    );
  });
});
