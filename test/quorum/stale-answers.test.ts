import { Deferred } from '../../lib/kernel/util/promises.js';
import type { AcquireReply, LockStore, LockOwner } from '../../lib/kernel/store/lock-store.js';
import type { PushedGrant, StoreListener } from '../../lib/kernel/store/message-health.js';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store.js';
import { FakeClock } from '../support/world/fake-clock.js';
import { SeededRandom } from '../support/world/seeded-random.js';

const LEASE_MS = 300;
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
