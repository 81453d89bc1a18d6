import {
  type AcquireReply,
  type GrantListener,
  type LockState,
  type LockStore,
  LockStoreError,
  type LockOwner,
  type PushedGrant,
  type Queueing,
  type Retention,
  type RetentionNotice,
  type RotateReply,
  type StoreFailure,
  type Transfer,
} from '../../../lib/core/store/lock-store.js';
import type { StoreProbe } from '../../../lib/core/store/store-probe.js';
import type { FreedListener, FreedMessage, Watcher, WatchReply } from '../../../lib/core/store/watch-store.js';

/** What becomes of a command on its way to the store and back. */
export type Fate = <T>(execute: () => Promise<T>) => Promise<T>;

const VERBS = [
  'acquire',
  'rotate',
  'setDepth',
  'renew',
  'release',
  'retain',
  'label',
  'verify',
  'downgrade',
  'raiseToken',
  'transfer',
  'lowerPermits',
  'resize',
  'inspect',
  'list',
  'forceRelease',
  'watch',
] as const;
export type Verb = (typeof VERBS)[number];

const never = new Promise<never>(() => {});

export const answered: Fate = (execute) => execute();
/** Redis hangs, and the command is lost with it. */
export const lostOnTheWay: Fate = () => never;
/** The command is executed, and nobody learns of it. */
export const replyLost: Fate = (execute) => execute().then(() => never);

/** The command is executed, and then the connection breaks. */
export const brokenAfter: Fate = async (execute) => {
  await execute();
  throw new LockStoreError('unknown', 'the connection broke before the reply');
};

export function failing(failure: StoreFailure, message = `Redis said: ${failure}`): Fate {
  return () => Promise.reject(new LockStoreError(failure, message));
}

/** Executed at once; the reply comes when the gate opens. */
export function repliedWhen(gate: Promise<void>): Fate {
  return async (execute) => {
    const reply = await execute();
    await gate;
    return reply;
  };
}

/** Executed only when the gate opens. */
export function executedWhen(gate: Promise<void>): Fate {
  return (execute) => gate.then(execute);
}

/** What becomes of a granting message on its way to the instance. */
export type GrantFate = (deliver: () => void) => void;

export const delivered: GrantFate = (deliver) => deliver();
export const grantLost: GrantFate = () => {};

/** As a connection that stalls, and then brings what it kept. */
export function deliveredWhen(gate: Promise<void>): GrantFate {
  return (deliver) => void gate.then(deliver);
}

export interface Command {
  readonly verb: Verb;
  readonly resource: string;
  /** Whom it is about; of a rotation, who releases. */
  readonly owner: string | undefined;
  /** Of a rotation, who wants the resource next; of a transfer, who has it then. */
  readonly next?: string;
  readonly sentAt: number;
  readonly leaseMs?: number;
  /** Of a retention: the minimum, and how much of it can be left. */
  readonly retention?: Retention;
  readonly depth?: number;
  readonly label?: string | undefined;
  /** How many permits are left. */
  readonly count?: number;
  /** Whether it joins the queue of a resource that is not free. */
  readonly queueing?: boolean;
}

/**
 * A store in front of another one: it notes every command and every granting message, and the test decides what becomes of
 * each.
 */
export class ScriptedStore implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  readonly commands: Command[] = [];
  /** What becomes of the commands of a kind from now on. */
  readonly fates: Partial<Record<Verb, Fate>> = {};
  readonly #next: Partial<Record<Verb, Fate[]>> = {};
  /** The granting messages that the store behind has sent, whatever became of them. */
  readonly grants: PushedGrant[] = [];
  /** The messages that a resource stays taken. They have the fate of the granting ones. */
  readonly notices: RetentionNotice[] = [];
  /** What becomes of granting messages from now on. */
  grantFate: GrantFate = delivered;
  readonly #nextGrants: GrantFate[] = [];
  readonly #listeners: GrantListener[] = [];
  /** The messages of free resources that the store behind has sent, whatever became of them. */
  readonly freedMessages: FreedMessage[] = [];
  readonly #freedListeners: FreedListener[] = [];
  /** Whether messages of free resources are lost. */
  isDeaf = false;
  isClosed = false;
  /** Whether it says that it cannot be asked, before it is asked. */
  trouble: (resource: string) => LockStoreError | undefined = () => undefined;
  /** Whose tokens are of one order. */
  fenceOf: (resource: string) => string = (resource) => this.inner.fenceOf(resource);
  readonly #nextFor = new Map<string, Fate>();

  constructor(
    private readonly inner: LockStore,
    private readonly now: () => number,
  ) {
    this.instanceId = inner.instanceId;
    this.clientId = inner.clientId;
    inner.listen({
      granted: (grant) => {
        this.grants.push(grant);
        const fate = this.#nextGrants.shift() ?? this.grantFate;
        fate(() => this.deliver(grant));
      },
      retained: (notice) => {
        this.notices.push(notice);
        if (this.grantFate === delivered) this.deliverNotice(notice);
      },
      reconnected: () => this.reconnect(),
    });
    inner.listenForFreed({
      freed: (message) => {
        this.freedMessages.push(message);
        if (!this.isDeaf) this.deliverFreed(message);
      },
      reconnected: () => {},
    });
  }

  /** What becomes of the next commands of a kind, one after another; before `fates`. */
  next(verb: Verb, ...fates: Fate[]): void {
    (this.#next[verb] ??= []).push(...fates);
  }

  /** What becomes of the next command about one resource; before `next`. */
  nextFor(resource: string, fate: Fate): void {
    this.#nextFor.set(resource, fate);
  }

  /** Every kind of command has this fate from now on. */
  all(fate: Fate): void {
    for (const verb of VERBS) this.fates[verb] = fate;
  }

  sent(verb: Verb): Command[] {
    return this.commands.filter((command) => command.verb === verb);
  }

  /** What becomes of the next granting messages, one after another; before `grantFate`. */
  nextGrants(...fates: GrantFate[]): void {
    this.#nextGrants.push(...fates);
  }

  /** Brings the instance a granting message: one of `grants` once more, or a forged one. */
  deliver(grant: PushedGrant): void {
    for (const listener of this.#listeners) listener.granted(grant);
  }

  deliverNotice(notice: RetentionNotice): void {
    for (const listener of this.#listeners) listener.retained?.(notice);
  }

  /** The connection is new: grants may have been missed. */
  reconnect(): void {
    for (const listener of this.#listeners) listener.reconnected();
    for (const listener of this.#freedListeners) listener.reconnected();
  }

  /** Brings the instance a message of a free resource: one of `freedMessages` once more, or a forged one. */
  deliverFreed(message: FreedMessage): void {
    for (const listener of this.#freedListeners) listener.freed(message);
  }

  acquire(newOwner: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    const details = { leaseMs, queueing: queueing !== undefined };
    return this.#send('acquire', newOwner, details, () => this.inner.acquire(newOwner, leaseMs, queueing));
  }

  rotate(owner: LockOwner, newOwner: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    const details = { leaseMs, queueing: true, next: newOwner.id };
    return this.#send('rotate', owner, details, () => this.inner.rotate(owner, newOwner, leaseMs, queueing));
  }

  setDepth(owner: LockOwner, depth: number, leaseMs: number): Promise<boolean> {
    return this.#send('setDepth', owner, { depth, leaseMs }, () => this.inner.setDepth(owner, depth, leaseMs));
  }

  renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean> {
    return this.#send('renew', owner, { leaseMs }, () => this.inner.renew(owner, leaseMs, exactly));
  }

  release(owner: LockOwner): Promise<boolean> {
    return this.#send('release', owner, {}, () => this.inner.release(owner));
  }

  retain(owner: LockOwner, retention: Retention): Promise<boolean> {
    return this.#send('retain', owner, { retention }, () => this.inner.retain(owner, retention));
  }

  label(owner: LockOwner, label: string | undefined): Promise<boolean> {
    return this.#send('label', owner, { label }, () => this.inner.label(owner, label));
  }

  verify(owner: LockOwner): Promise<boolean> {
    return this.#send('verify', owner, {}, () => this.inner.verify(owner));
  }

  downgrade(owner: LockOwner, leaseMs: number): Promise<boolean> {
    return this.#send('downgrade', owner, { leaseMs }, () => this.inner.downgrade(owner, leaseMs));
  }

  raiseToken(owner: LockOwner, fencingToken: number): Promise<boolean> {
    return this.#send('raiseToken', owner, {}, () => this.inner.raiseToken(owner, fencingToken));
  }

  transfer(owner: LockOwner, transfer: Transfer): Promise<number | null> {
    const details = { leaseMs: transfer.leaseMs, next: transfer.to };
    return this.#send('transfer', owner, details, () => this.inner.transfer(owner, transfer));
  }

  lowerPermits(owner: LockOwner, count: number): Promise<boolean> {
    return this.#send('lowerPermits', owner, { count }, () => this.inner.lowerPermits(owner, count));
  }

  resize(resource: string, total: number): Promise<boolean> {
    return this.#send('resize', { resource }, {}, () => this.inner.resize(resource, total));
  }

  inspect(resource: string): Promise<LockState> {
    return this.#send('inspect', { resource }, {}, () => this.inner.inspect(resource));
  }

  /** Its resource is the prefix. */
  list(prefix: string, limit: number): Promise<string[]> {
    return this.#send('list', { resource: prefix }, {}, () => this.inner.list(prefix, limit));
  }

  forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    return this.#send('forceRelease', { resource }, {}, () => this.inner.forceRelease(resource, fencingToken));
  }

  listen(listener: GrantListener): void {
    this.#listeners.push(listener);
  }

  /** Its lease is how long the watch lasts; with 0 it only looks. */
  watch(watcher: Watcher, watchMs: number): Promise<WatchReply> {
    return this.#send('watch', watcher, { leaseMs: watchMs }, () => this.inner.watch(watcher, watchMs));
  }

  listenForFreed(listener: FreedListener): void {
    this.#freedListeners.push(listener);
  }

  probe: () => StoreProbe = () => this.inner.probe();

  async close(): Promise<void> {
    this.isClosed = true;
    await this.inner.close();
  }

  #send<T>(
    verb: Verb,
    { resource, id: owner }: { resource: string; id?: string },
    details: Partial<Command>,
    execute: () => Promise<T>,
  ): Promise<T> {
    this.commands.push({ verb, resource, owner, sentAt: this.now(), ...details });
    const meant = this.#nextFor.get(resource);
    this.#nextFor.delete(resource);
    const fate = meant ?? this.#next[verb]?.shift() ?? this.fates[verb] ?? answered;
    return fate(execute);
  }
}
