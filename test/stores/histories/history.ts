import { strict as assert } from 'node:assert';
import type { AcquireReply, LockOwner, LockStore } from '../../../lib/kernel/store/lock-store.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { eventually } from '../../support/expect/eventually.js';
import { GrantLog, type OwnedGrant } from '../../contract/grant-log.js';
import { LockModel, TOKENS_PER_TICK } from '../../support/simulation/lock-model.js';
import { Comparison, type Pace } from './comparison.js';
import { CLIENTS, type HistoryPlan, type PlannedStep, RESOURCES } from './history-plan.js';
import type { StoreSubject } from '../../contract/subject.js';

/** The time limit for a message; only a broken store needs it. */
const MESSAGE_MS = 5_000;

/** Longer than any history. */
const WATCH_MS = 100_000_000;

interface Client {
  readonly store: LockStore;
  readonly grants: GrantLog;
  /** The messages about free resources, for its watchers. */
  readonly freed: FreedLog;
}

/** Runs a plan on a store and on the model, and throws where they differ. */
export class History {
  static async begin(subject: StoreSubject, plan: HistoryPlan, pace: Pace): Promise<History> {
    const clients: Client[] = [];
    for (let i = 0; i <= CLIENTS; i++) {
      const { locks: store } = await subject.open(`client${i}`);
      const grants = new GrantLog(store);
      clients.push({ store, grants, freed: new FreedLog(grants) });
    }
    return new History(subject, plan, pace, clients);
  }

  readonly #model = new LockModel();
  readonly #comparison: Comparison;
  readonly #watch: LockStore;
  #sent = 0;
  /** The number of leases granted, by reply or by message. */
  grants = 0;
  /** The number of places kept. */
  kept = 0;
  /** The number of messages to watchers about free resources. */
  freed = 0;

  private constructor(
    private readonly subject: StoreSubject,
    private readonly plan: HistoryPlan,
    private readonly pace: Pace,
    private readonly clients: readonly Client[],
  ) {
    this.#comparison = new Comparison(this.#model, pace);
    // It never dies, and no actor belongs to it.
    this.#watch = clients[CLIENTS]!.store;
  }

  async run(): Promise<void> {
    for (const step of this.plan.steps) {
      await this.#take(step);
      await this.#compare();
    }
    await this.#compareLists();
    await this.#end();
  }

  async #take(step: PlannedStep): Promise<void> {
    const { resource, actor } = step;
    if (step.verb === 'pass') {
      this.#model.now += step.units * this.pace.unitMs;
      return this.subject.pass(step.units * this.pace.unitMs);
    }
    if (step.verb === 'kill') return this.#kill();
    if (step.verb === 'resize') {
      const reply = await this.#watch.resize(resource, step.total);
      return this.#comparison.same(reply, this.#model.resize(resource, step.total), step);
    }
    if (step.verb === 'forceRelease') return this.#forceRelease(resource, step.holder);
    const { store } = this.#clientOf(actor);
    if (this.#model.gone.has(store.clientId)) return;
    await this.#act(step, store, this.#owner(actor, resource));
  }

  async #act(step: PlannedStep, store: LockStore, own: LockOwner): Promise<void> {
    const model = this.#model;
    const leaseMs = 'leases' in step ? step.leases * this.pace.unitMs : 0;
    const queueing = { sentAt: ++this.#sent, maxWaiters: 'maxWaiters' in step ? step.maxWaiters : 0 };
    switch (step.verb) {
      case 'acquire': {
        const how = step.queues ? queueing : undefined;
        return this.#sameReply(await store.acquire(own, leaseMs, how), model.acquire(own, leaseMs, how), step);
      }
      case 'keep':
        return this.#keep(step, store, own.resource, leaseMs, queueing.sentAt);
      case 'rotate': {
        const peers = this.#peersOf(step.actor);
        const next = this.#owner(peers[step.next % peers.length]!, own.resource);
        const reply = await store.rotate(own, next, leaseMs, queueing);
        const expected = model.rotate(own, next, leaseMs, queueing);
        this.#comparison.same(reply.released, expected.released, step);
        if (reply.next instanceof LockStoreError) throw reply.next;
        return this.#sameReply(reply.next, expected.next, step);
      }
      case 'renew': {
        const reply = await store.renew(own, leaseMs, step.exactly);
        return this.#comparison.same(reply, model.renew(own, leaseMs, step.exactly), step);
      }
      case 'setDepth': {
        const reply = await store.setDepth(own, step.depth, leaseMs);
        return this.#comparison.same(reply, model.setDepth(own, step.depth, leaseMs), step);
      }
      case 'downgrade':
        return this.#comparison.same(await store.downgrade(own, leaseMs), model.downgrade(own, leaseMs), step);
      case 'release':
        return this.#comparison.same(await store.release(own), model.release(own), step);
      case 'retain': {
        const retention = { minHoldMs: leaseMs, leftMs: step.atMost * this.pace.unitMs };
        return this.#comparison.same(await store.retain(own, retention), model.retain(own, retention), step);
      }
      case 'lowerPermits': {
        const reply = await store.lowerPermits(own, step.count);
        return this.#comparison.same(reply, model.lowerPermits(own, step.count), step);
      }
      case 'label':
        return this.#comparison.same(await store.label(own, step.label), model.label(own, step.label), step);
      case 'verify':
        return this.#comparison.same(await store.verify(own), model.verify(own), step);
      case 'watch': {
        const watcher = `${store.clientId}/watcher${step.actor} of ${own.resource}`;
        this.#clientOf(step.actor).freed.watchers.add(watcher);
        const { isFree } = await store.watch({ resource: own.resource, id: watcher, mark: step.mark }, WATCH_MS);
        return this.#comparison.same(isFree, model.watch(own.resource, watcher, step.mark), step);
      }
      default:
    }
  }

  /** The places of all actors of a client. */
  async #keep(step: PlannedStep, store: LockStore, resource: string, leaseMs: number, sentAt: number): Promise<void> {
    if (!store.keepPlaces) return;
    const places = this.#peersOf(step.actor).map((actor) => ({ waiter: this.#owner(actor, resource), leaseMs }));
    const replies = await store.keepPlaces(places, sentAt);
    this.#comparison.same(replies.length, places.length, step);
    for (const [index, place] of places.entries()) {
      const reply = replies[index]!;
      if (reply instanceof LockStoreError) throw reply;
      if (reply.status === 'ask' && this.#comparison.mayAsk(place.waiter)) continue;
      const expected = this.#model.keep(place, sentAt);
      this.#comparison.sameKept(reply, expected, step);
      if (reply.status === 'kept') this.kept++;
    }
  }

  async #forceRelease(resource: string, number: number): Promise<void> {
    const held = this.#model.holdersOf(resource);
    const token = held[number]?.token ?? 0;
    // A tick shared by several readers identifies none of them.
    if (held.filter((holder) => tickOf(holder.token) === tickOf(token)).length > 1) return;
    const reply = await this.#watch.forceRelease(
      resource,
      token === 0 ? TOKENS_PER_TICK : this.#comparison.tokens.real(token),
    );
    this.#comparison.same(reply, this.#model.forceRelease(resource, token), { forceRelease: resource, number });
  }

  async #kill(): Promise<void> {
    const victim = CLIENTS - 1;
    const { store } = this.clients[victim]!;
    if (this.#model.gone.has(store.clientId)) return;
    this.#model.gone.add(store.clientId);
    await this.subject.kill(`client${victim}`);
  }

  /** Compares everything visible after a step: the messages, and the state of all resources. */
  async #compare(): Promise<void> {
    for (const expected of this.#model.told.splice(0)) {
      const client = this.clients.find(({ store }) => expected.owner.startsWith(`${store.clientId}/`))!;
      const { fencingToken, ...told } = await soon(client.grants, expected);
      const { fencingToken: order, ...rest } = expected;
      assert.deepEqual(told, rest);
      this.#comparison.tokens.note(order, fencingToken);
      this.grants++;
    }
    for (const { watcher, mark } of this.#model.toldFree.splice(0)) {
      const client = this.clients.find(({ store }) => watcher.startsWith(`${store.clientId}/`))!;
      await client.freed.has(`${mark} ${watcher}`);
      this.freed++;
    }
    const states = await Promise.all(RESOURCES.map((resource) => this.#watch.inspect(resource)));
    for (const state of states)
      this.#comparison.sameState(state, this.#model.inspect(state.resource, this.#watch.clientId));
  }

  async #compareLists(): Promise<void> {
    for (const prefix of ['', 's', 's*', 'stock', 'stocks']) {
      assert.deepEqual((await this.#watch.list(prefix, 10)).sort(), this.#model.list(prefix), `the list of ${prefix}`);
    }
  }

  #sameReply(reply: AcquireReply, expected: AcquireReply, step: PlannedStep): void {
    this.#comparison.sameReply(reply, expected, step);
    if (reply.status === 'granted') this.grants++;
  }

  /** All clients release their leases, and an operator those of the dead. Then nothing is left. */
  async #end(): Promise<void> {
    for (const resource of RESOURCES) {
      for (const holder of this.#model.holdersOf(resource)) {
        await this.#watch.forceRelease(resource, this.#comparison.tokens.real(holder.token));
        this.#model.forceRelease(resource, holder.token);
      }
      await this.#compare();
      const owners = new Set([...this.#model.holders, ...this.#model.waiters].map(({ owner }) => owner));
      for (const owner of [`${this.#watch.clientId}/last`, ...owners, `${this.#watch.clientId}/last`]) {
        await this.#watch.release({ resource, id: owner, mode: 'exclusive' });
        this.#model.release({ resource, id: owner, mode: 'exclusive' });
      }
      await this.#compare();
    }
    assert.ok(await this.subject.isEmpty(), 'something is left in the store');
    for (const { grants } of this.clients) assert.equal(grants.size, 0, 'somebody was told of a grant that is none');
    for (const { freed } of this.clients)
      assert.deepEqual(freed.messages, [], 'a watcher was told, and it was not free');
  }

  #clientOf(actor: number): Client {
    return this.clients[this.plan.actors[actor]!.client]!;
  }

  /** The actors of the same client. */
  #peersOf(actor: number): number[] {
    const { actors } = this.plan;
    return [...actors.keys()].filter((other) => actors[other]!.client === actors[actor]!.client);
  }

  #owner(actor: number, resource: string): LockOwner {
    const { client: _, ...request } = this.plan.actors[actor]!;
    return { ...request, resource, id: `${this.#clientOf(actor).store.clientId}/actor${actor}` };
  }
}

/** The next grant that a client receives. @throws if none arrives */
async function soon(grants: GrantLog, expected: OwnedGrant): Promise<OwnedGrant> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = (): void => reject(new Error(`nobody was told of ${JSON.stringify(expected)}`));
    timer = setTimeout(refuse, MESSAGE_MS);
  });
  try {
    return await Promise.race([grants.next(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The messages of free resources that one instance has had, each with its mark and its watcher. */
class FreedLog {
  readonly watchers = new Set<string>();
  readonly messages: string[] = [];

  constructor(grants: GrantLog) {
    grants.onFreed = ({ mark, isFor }) =>
      void this.messages.push(`${mark} ${[...this.watchers].find(isFor) ?? 'nobody'}`);
  }

  /** Waits for this message, and takes it out. @throws when it does not come */
  async has(message: string): Promise<void> {
    await eventually(() => assert.ok(this.messages.includes(message), `no watcher was told ${message}`), MESSAGE_MS);
    this.messages.splice(this.messages.indexOf(message), 1);
  }
}

function tickOf(token: number): number {
  return Math.floor(token / TOKENS_PER_TICK);
}
