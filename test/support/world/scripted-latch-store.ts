import type { StoreListener } from '../../../lib/core/store/hearing.js';
import type { LatchState, LatchStore, LatchSpec } from '../../../lib/core/store/latch-store.js';
import type { LockStore } from '../../../lib/core/store/lock-store.js';
import type { LockStoreError } from '../../../lib/core/store/store-error.js';
import { answered, type Fate } from './scripted-store.js';

export type LatchVerb = 'countDown' | 'wait' | 'read';

/**
 * A latch store in front of another one: it notes every command, and the test decides what becomes of each. Also of the
 * messages that the lock store beside it brings.
 */
export class ScriptedLatchStore implements LatchStore {
  readonly commands: { verb: LatchVerb; id?: string; sentAt: number }[] = [];
  /** What becomes of the commands of a kind from now on. */
  readonly fates: Partial<Record<LatchVerb, Fate>> = {};
  readonly #next: Partial<Record<LatchVerb, Fate[]>> = {};
  /** Whether messages arrive. */
  isDeaf = false;
  /** Whether it says that it cannot be asked, before it is asked. */
  trouble: (name: string) => LockStoreError | undefined = () => undefined;
  #listener: StoreListener | undefined;

  constructor(
    private readonly inner: LatchStore,
    locks: LockStore,
    private readonly now: () => number,
  ) {
    const { listen } = locks;
    locks.listen = (listener) => {
      this.#listener = listener;
      const opened = (name: string, count: number): void => {
        if (!this.isDeaf) this.deliver(name, count);
      };
      listen.call(locks, { ...listener, opened });
    };
  }

  /** What becomes of the next commands of a kind, one after another; before `fates`. */
  next(verb: LatchVerb, ...fates: Fate[]): void {
    (this.#next[verb] ??= []).push(...fates);
  }

  sent(verb: LatchVerb): number {
    return this.commands.filter((command) => command.verb === verb).length;
  }

  deliver(name: string, count: number): void {
    this.#listener?.opened?.(name, count);
  }

  reconnect(): void {
    this.#listener?.reconnected();
  }

  countDown(terms: LatchSpec, id: string): Promise<LatchState> {
    return this.#send('countDown', () => this.inner.countDown(terms, id), id);
  }

  wait(terms: LatchSpec, placeMs: number): Promise<LatchState> {
    return this.#send('wait', () => this.inner.wait(terms, placeMs));
  }

  read(terms: LatchSpec): Promise<LatchState> {
    return this.#send('read', () => this.inner.read(terms));
  }

  #send(verb: LatchVerb, execute: () => Promise<LatchState>, id?: string): Promise<LatchState> {
    this.commands.push({ verb, sentAt: this.now(), ...(id !== undefined && { id }) });
    const fate = this.#next[verb]?.shift() ?? this.fates[verb] ?? answered;
    return fate(execute);
  }
}
