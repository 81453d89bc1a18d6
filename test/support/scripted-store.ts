import type { AcquireReply, LockState, LockStore, Ownership, StoreFailure } from '../../lib/core/lock-store.js';
import { LockStoreError } from '../../lib/core/lock-store.js';

/** What becomes of a command on its way to the store and back. */
export type Fate = <T>(execute: () => Promise<T>) => Promise<T>;

export type Verb = 'acquire' | 'setDepth' | 'renew' | 'release' | 'verify' | 'inspect';

const never = new Promise<never>(() => {});

export const answered: Fate = (execute) => execute();
/** Redis hangs, and the command is lost with it. */
export const lostOnTheWay: Fate = () => never;
/** The command is executed, and nobody learns of it. */
export const replyLost: Fate = (execute) => execute().then(() => never);

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

export interface Command {
  readonly verb: Verb;
  readonly resource: string;
  readonly owner: string | undefined;
  readonly sentAt: number;
  readonly leaseMs?: number;
  readonly depth?: number;
  readonly leaveQueue?: boolean;
}

/** A store in front of another one: it notes every command, and the test decides what becomes of each kind. */
export class ScriptedStore implements LockStore {
  readonly instanceId: string;
  readonly commands: Command[] = [];
  /** What becomes of the commands of a kind from now on. */
  readonly fates: Partial<Record<Verb, Fate>> = {};
  readonly #next: Partial<Record<Verb, Fate[]>> = {};
  readonly #listeners: ((resource: string | undefined) => void)[] = [];
  isClosed = false;

  constructor(
    private readonly inner: LockStore,
    private readonly now: () => number,
  ) {
    this.instanceId = inner.instanceId;
  }

  /** What becomes of the next commands of a kind, one after another; before `fates`. */
  next(verb: Verb, ...fates: Fate[]): void {
    (this.#next[verb] ??= []).push(...fates);
  }

  /** Every kind of command has this fate from now on. */
  all(fate: Fate): void {
    for (const verb of ['acquire', 'setDepth', 'renew', 'release', 'verify', 'inspect'] as const)
      this.fates[verb] = fate;
  }

  sent(verb: Verb): Command[] {
    return this.commands.filter((command) => command.verb === verb);
  }

  /** Wake-ups may have been missed: the connection is new. */
  reconnect(): void {
    for (const listener of this.#listeners) listener(undefined);
  }

  acquire(contender: Ownership, leaseMs: number, wait: boolean): Promise<AcquireReply> {
    return this.#send('acquire', contender, { leaseMs }, () => this.inner.acquire(contender, leaseMs, wait));
  }

  setDepth(ownership: Ownership, depth: number, leaseMs: number): Promise<boolean> {
    return this.#send('setDepth', ownership, { depth, leaseMs }, () => this.inner.setDepth(ownership, depth, leaseMs));
  }

  renew(ownership: Ownership, leaseMs: number): Promise<boolean> {
    return this.#send('renew', ownership, { leaseMs }, () => this.inner.renew(ownership, leaseMs));
  }

  release(ownership: Ownership, leaveQueue: boolean): Promise<boolean> {
    return this.#send('release', ownership, { leaveQueue }, () => this.inner.release(ownership, leaveQueue));
  }

  verify(ownership: Ownership): Promise<boolean> {
    return this.#send('verify', ownership, {}, () => this.inner.verify(ownership));
  }

  inspect(resource: string): Promise<LockState> {
    return this.#send('inspect', { resource }, {}, () => this.inner.inspect(resource));
  }

  onWake(listener: (resource: string | undefined) => void): void {
    this.#listeners.push(listener);
    this.inner.onWake(listener);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.inner.close();
  }

  #send<T>(
    verb: Verb,
    { resource, owner }: { resource: string; owner?: string },
    details: Partial<Command>,
    execute: () => Promise<T>,
  ): Promise<T> {
    this.commands.push({ verb, resource, owner, sentAt: this.now(), ...details });
    const fate = this.#next[verb]?.shift() ?? this.fates[verb] ?? answered;
    return fate(execute);
  }
}
