import type { Fate, TestCommand } from '../../../lib/testing/fleet/commands.js';
import type {
  MessageHealth,
  PushedGrant,
  PushedNotice,
  StoreListener,
} from '../../../lib/kernel/store/message-health.js';
import type { LockStore } from '../../../lib/kernel/store/lock-store.js';
import { LockStoreError, type StoreFailure } from '../../../lib/kernel/store/store-error.js';
import type { StoreProbe } from '../../../lib/kernel/store/store-probe.js';
import type { FreedMessage } from '../../../lib/kernel/store/watch-store.js';
import { LOCK_COMMANDS, TestLockStore } from '../../../lib/testing/fleet/test-lock-store.js';

export type { Fate };

const VERBS = [...LOCK_COMMANDS, 'keep', 'roll'] as const;
export type Verb = (typeof VERBS)[number];

const never = new Promise<never>(() => {});

export const answered: Fate = (execute) => execute();
/** Redis hangs, and the command is lost with it. */
export const lostOnTheWay: Fate = () => never;
/** Executes the command and drops its reply. */
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

/** The fate of a granting message on its way to the instance. */
export type GrantFate = (deliver: () => void) => void;

export const delivered: GrantFate = (deliver) => deliver();
export const grantLost: GrantFate = () => {};

/** As a connection that stalls, and then brings what it kept. */
export function deliveredWhen(gate: Promise<void>): GrantFate {
  return (deliver) => void gate.then(deliver);
}

/** A command, and when it was sent. */
export interface Command extends Omit<TestCommand, 'verb' | 'instanceId'> {
  readonly verb: Verb;
  readonly owner: string | undefined;
  readonly sentAt: number;
}

/** Message health, as the test decides. */
export class ScriptedHearing implements MessageHealth {
  trustedForMs = Infinity;
  silentSince: number | undefined;
  isRelied = false;

  setNeeded(isRelied: boolean): void {
    this.isRelied = isRelied;
  }
}

type TestDetails = Omit<TestCommand, 'instanceId' | 'verb'> & { readonly verb: TestCommand['verb'] | Verb };

/**
 * A store in front of another one: it notes every command and every granting message, and the test decides what becomes of
 * each.
 */
export class ScriptedStore extends TestLockStore {
  readonly commands: Command[] = [];
  /** The health of messages; unset for a store without places. `isRelied` is core's last report. */
  declare hearing?: ScriptedHearing;
  /** The fates of the commands of each kind from now on. */
  readonly fates: Partial<Record<Verb, Fate>> = {};
  readonly #next: Partial<Record<Verb, Fate[]>> = {};
  /** The granting messages that the store behind has sent, whatever became of them. */
  readonly grants: PushedGrant[] = [];
  /** The messages that a resource stays taken. They have the fate of the granting ones. */
  readonly notices: PushedNotice[] = [];
  /** The fate of granting messages from now on. */
  grantFate: GrantFate = delivered;
  readonly #nextGrants: GrantFate[] = [];
  readonly #listeners: StoreListener[] = [];
  /** The messages of free resources that the store behind has sent, whatever became of them. */
  readonly freedMessages: FreedMessage[] = [];
  /** `true` drops messages about free resources and roll calls. */
  isDeaf = false;
  isClosed = false;
  /** Reports unavailability before a command is sent. */
  override trouble: (resource: string) => LockStoreError | undefined = () => undefined;
  /** Whose tokens are of one order. */
  override fenceOf: (resource: string) => string = (resource) => this.inner.fenceOf(resource);
  readonly #nextFor = new Map<string, Fate>();

  constructor(
    inner: LockStore,
    private readonly now: () => number,
  ) {
    // Fates are decided here and not on the path.
    super(inner, {
      send: (command, execute) => this.#send(command, execute),
      deliver: (_resource, deliver) => deliver(),
      trouble: () => undefined,
      onReconnected: () => {},
      onDisconnected: () => {},
      closed: () => {},
    });
    this.hearing = new ScriptedHearing();
    inner.listen({
      granted: (grant) => {
        this.grants.push(grant);
        const fate = this.#nextGrants.shift() ?? this.grantFate;
        fate(() => this.deliver(grant));
      },
      retained: (notice) => {
        this.notices.push(notice);
        this.grantFate(() => this.deliverNotice(notice));
      },
      called: (call) => {
        if (!this.isDeaf) for (const listener of this.#listeners) listener.called?.(call);
      },
      freed: (message) => {
        this.freedMessages.push(message);
        if (!this.isDeaf) this.deliverFreed(message);
      },
      reconnected: () => this.reconnect(),
    });
  }

  /** From now on it does not keep places, as a quorum: each waiter asks. */
  keepsNoPlaces(): void {
    this.keepPlaces = undefined;
    this.hearing = undefined;
  }

  /** Messages may be lost from now on. */
  unprove(): void {
    for (const listener of this.#listeners) listener.deliveryUncertain?.();
  }

  /** Sets the fates of the next commands of a kind, in order; they precede `fates`. */
  next(verb: Verb, ...fates: Fate[]): void {
    (this.#next[verb] ??= []).push(...fates);
  }

  /** Sets the fate of the next command for one resource; it precedes `next`. */
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

  /** Sets the fates of the next granting messages, in order; they precede `grantFate`. */
  nextGrants(...fates: GrantFate[]): void {
    this.#nextGrants.push(...fates);
  }

  /** Brings the instance a granting message: one of `grants` once more, or a forged one. */
  deliver(grant: PushedGrant): void {
    for (const listener of this.#listeners) listener.granted(grant);
  }

  deliverNotice(notice: PushedNotice): void {
    for (const listener of this.#listeners) listener.retained?.(notice);
  }

  /** The connection is new: grants may have been missed. */
  reconnect(): void {
    for (const listener of this.#listeners) listener.reconnected();
  }

  /** Brings the instance a message of a free resource: one of `freedMessages` once more, or a forged one. */
  deliverFreed(message: FreedMessage): void {
    for (const listener of this.#listeners) listener.freed?.(message);
  }

  override listen(listener: StoreListener): void {
    this.#listeners.push(listener);
  }

  override probe: () => StoreProbe = () => this.inner.probe();

  override async close(): Promise<void> {
    this.isClosed = true;
    await this.inner.close();
  }

  #send<T>({ verb, ...details }: TestDetails, execute: () => Promise<T>): Promise<T> {
    const { resource } = details;
    this.commands.push({ owner: undefined, ...details, verb: verb as Verb, sentAt: this.now() });
    const meant = this.#nextFor.get(resource);
    this.#nextFor.delete(resource);
    const fate = meant ?? this.#next[verb as Verb]?.shift() ?? this.fates[verb as Verb] ?? answered;
    return fate(execute);
  }
}
