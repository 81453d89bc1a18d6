import type {
  ForeignClaim,
  ForeignClient,
  ForeignContext,
  ForeignLock,
  ForeignReply,
  ForeignRun,
} from '../../../lib/core/api/foreign-lock.js';
import { LockStoreError, type StoreFailure } from '../../../lib/core/store/store-error.js';
import { Deferred } from '../../../lib/core/util/promises.js';
import type { FakeClock } from './fake-clock.js';

/** What is the matter with one command: it fails before or after it was executed, or its answer waits. */
export interface Trouble {
  readonly failure?: StoreFailure;
  /** Whether it is executed all the same. */
  readonly isExecuted?: boolean;
  /** It is executed, and answered, only when this resolves. */
  readonly until?: Promise<void>;
}

/** A command as the server has seen it. */
export interface ForeignCommand {
  readonly name: 'acquire' | 'renew' | 'release';
  readonly at: number;
  readonly owner: string;
  readonly ms: number;
}

interface Held {
  readonly owner: string;
  readonly endsAt: number;
}

/** The server of another library, in memory: one owner for each key, and an end. */
export class FakeForeignServer {
  readonly commands: ForeignCommand[] = [];
  /** How long a key stays at least after a release. */
  keepsFor = 0;
  /** How many clients are open. */
  open = 0;
  /** What is the matter with the next commands of a kind, one after another. */
  readonly troubles: { [name in ForeignCommand['name']]: Trouble[] } = { acquire: [], renew: [], release: [] };
  readonly #held = new Map<string, Held>();
  readonly #freed = new Set<() => void>();

  constructor(readonly clock: FakeClock) {}

  /** The owner of a key, if it has one now. */
  ownerOf(key: string): string | undefined {
    const held = this.#held.get(key);
    return held && held.endsAt > this.clock.now() ? held.owner : undefined;
  }

  ttlMs(key: string): number {
    return this.ownerOf(key) === undefined ? 0 : this.#held.get(key)!.endsAt - this.clock.now();
  }

  /** A process with the other library takes the key, or takes it away. */
  put(key: string, owner: string, ms: number): void {
    this.#held.set(key, { owner, endsAt: this.clock.now() + ms });
  }

  delete(key: string): void {
    this.#held.delete(key);
    this.wakeAll();
  }

  /** Tells every waiter that its lock may be free. */
  wakeAll(): void {
    for (const wake of this.#freed) wake();
  }

  names(): string[] {
    return this.commands.map(({ name }) => name);
  }

  acquire(key: string, owner: string, ms: number, run?: ForeignRun): Promise<ForeignReply> {
    return this.#run('acquire', owner, ms, () => {
      const present = this.ownerOf(key);
      if (present !== undefined && present !== owner) {
        const token = run && present.includes(run.name) ? parseInt(present.split(run.name)[1]!, 10) : NaN;
        const isOurs = !Number.isNaN(token);
        if (!run || !(token < run.token)) return { status: 'busy', ttlMs: this.ttlMs(key), ...(isOurs && { isOurs }) };
      }
      this.put(key, owner, Math.max(ms, this.ttlMs(key)));
      return { status: 'held' };
    });
  }

  renew(key: string, owner: string, ms: number): Promise<boolean> {
    return this.#run('renew', owner, ms, () => {
      if (this.ownerOf(key) !== owner) return false;
      this.put(key, owner, Math.max(ms, this.ttlMs(key)));
      return true;
    });
  }

  release(key: string, owner: string, keepMs: number): Promise<boolean> {
    return this.#run('release', owner, keepMs, () => {
      if (this.ownerOf(key) !== owner) return false;
      const keptMs = Math.max(keepMs, this.keepsFor);
      if (keptMs > 0) this.put(key, `kept for ${owner}`, keptMs);
      else this.delete(key);
      return true;
    });
  }

  /** Resolves at the next release. */
  whenFreed(signal: AbortSignal): Promise<void> {
    const freed = new Deferred<void>();
    const wake = (): void => freed.resolve();
    this.#freed.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    return freed.promise.finally(() => this.#freed.delete(wake));
  }

  async #run<T>(name: ForeignCommand['name'], owner: string, ms: number, execute: () => T): Promise<T> {
    this.commands.push({ name, at: this.clock.now(), owner, ms });
    const { failure, isExecuted = failure === undefined, until } = this.troubles[name].shift() ?? {};
    if (until) await until;
    const reply = isExecuted ? execute() : undefined;
    if (failure) throw new LockStoreError(failure, `the fake server says ${failure}`);
    return reply as T;
  }
}

export interface FakeForeignOptions {
  readonly library?: string;
  readonly key?: (resource: string) => string | undefined;
  /** Whether it tells its waiters of a release. */
  readonly wakesUp?: boolean;
}

/** A lock of a library that does not exist, on a server whose troubles the test decides on. */
export function fakeForeignLock(
  server: FakeForeignServer,
  { library = 'oldlock', key = (resource) => `old:${resource}`, wakesUp = false }: FakeForeignOptions = {},
): ForeignLock {
  return {
    library,
    keyOf: key,
    open(context: ForeignContext): ForeignClient {
      server.open++;
      return {
        claim(claimed: string, run?: ForeignRun): ForeignClaim {
          const owner = `${run ? `${run.name}${run.token}:` : ''}${context.randomId()}`;
          return {
            tryAcquire: (ms) => server.acquire(claimed, owner, ms, run),
            renew: (ms) => server.renew(claimed, owner, ms),
            release: (keepMs) => server.release(claimed, owner, keepMs),
            ...(wakesUp && { whenFree: (_ms: number, signal: AbortSignal) => server.whenFreed(signal) }),
          };
        },
        close() {
          server.open--;
          return Promise.resolve();
        },
      };
    },
  };
}
