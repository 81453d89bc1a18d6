import { randomBytes } from 'node:crypto';
import { LockBusyError } from '../../../kernel/api/busy-errors.js';
import { LockAbortedError, LockError, LockUnavailableError } from '../../../kernel/api/errors.js';
import type { Lease } from '../../../kernel/api/lease.js';
import { LockClient } from '../../../kernel/lock-client.js';
import { SYSTEM_CLOCK } from '../../../kernel/util/clock.js';
import { pause, within } from '../../../kernel/util/promises.js';
import { scriptOf } from '../../../redis/script/script.js';
import { SeededRandom } from '../../../testing/fleet/seeded-random.js';
import { TRY_INFIX } from '../frame/connection.js';
import { CliError } from '../frame/exit-codes.js';
import type { Session } from '../frame/session.js';
import { LOSS_MS, type SlowSpan } from './check-history.js';
import type { TriedCall } from './history.js';
import { Pace, PacedStore } from './paced-store.js';

export const CLIENTS = 4;
const CALLERS_OF_CLIENT = 2;
export const LEASE_MS = 1_000;
const PERMITS = 3;
const CONNECT_MS = 10_000;
/** Longer than a dead holder keeps a lock. */
const WAIT_MS = 10_000;
/** More than most calls wait: it often ends just when the grant comes. */
const HASTY_MS = 30;
const HOLD_MS = 20;
/** Longer than a lease, so that it has to be renewed. */
const LONG_HOLD_MS = 1.5 * LEASE_MS;
const MAX_FAULT_EVERY_MS = 1_000;
const LOOP_MS = 10;
/** The event loop was blocked. */
const BLOCKED_MS = 50;
/** The limit is 200. The rest is for scripts that Redis does not know yet, and connections that break by themselves. */
const COMMANDS_PER_SECOND = 180;
/** The most commands with which the connections of one client to one server begin. */
const GREETING = 12;

const CLEAN_UP = scriptOf('cleanUp', "return redis.call('DEL', unpack(KEYS))");

/** What a caller does, the more often the larger its weight. */
const TASKS = [
  { key: 'exclusive-1', mode: 'exclusive', weight: 3 },
  { key: 'exclusive-2', mode: 'exclusive', weight: 3 },
  { key: 'shared', mode: 'read', weight: 3 },
  { key: 'shared', mode: 'write', weight: 1 },
  { key: 'semaphore', mode: 'semaphore', weight: 3 },
] as const;
type Task = (typeof TASKS)[number];

const DECK = TASKS.flatMap((task) => Array.from({ length: task.weight }, () => task));

interface Contender {
  readonly store: PacedStore;
  readonly client: LockClient;
  /** Aborts when the run ends, or the client dies. */
  readonly end: AbortController;
  isDead: boolean;
}

const now = (): number => SYSTEM_CLOCK.now();

/** The errors that a caller may get. Any other one is a mistake of this file. */
function isRefusal(error: unknown): error is LockBusyError | LockAbortedError | LockUnavailableError {
  return error instanceof LockBusyError || error instanceof LockAbortedError || error instanceof LockUnavailableError;
}

/**
 * Clients of this process that take turns at locks of their own prefix. Some lose their connections in the middle, and
 * some die: they close them and renew nothing. Records what each caller saw, by the clock of this process.
 */
export class Trial {
  /** Begins with the prefix of the application, so its Redis user needs no further rights. */
  readonly keyPrefix: string;
  readonly calls: TriedCall[] = [];
  readonly slow: SlowSpan[] = [];
  readonly faults = { connections: 0, clients: 0 };
  /** The number of calls without a lease, by the code of the error. */
  readonly refusals: Record<string, number> = {};
  readonly #pace = new Pace(COMMANDS_PER_SECOND, SYSTEM_CLOCK);
  readonly #contenders: Contender[] = [];
  readonly #work: Promise<void>[] = [];
  /** The commands with which a client begins to connect. */
  readonly #greeting: number;
  #isOver = false;
  #callers = 0;
  #faultEveryMs = MAX_FAULT_EVERY_MS;
  #faultAt = Infinity;
  #closing: Promise<void> | undefined;

  constructor(
    private readonly session: Session,
    private readonly seed: number,
  ) {
    this.#greeting = GREETING * session.store.connection.servers().length;
    this.keyPrefix = `${session.keyPrefix}${TRY_INFIX}${randomBytes(4).toString('hex')}`;
  }

  /** Runs for this time, or until the signal aborts, and cleans up. @throws CliError if a client cannot connect */
  async run(ms: number, signal: AbortSignal): Promise<void> {
    const endLoop = this.#watchLoop();
    try {
      for (let client = 0; client < CLIENTS; client++) await this.#begin(this.#join());
      this.#faultEveryMs = Math.min(MAX_FAULT_EVERY_MS, ms / 6);
      this.#faultAt = now() + this.#faultEveryMs;
      await pause(SYSTEM_CLOCK, ms, signal);
    } finally {
      await this.close();
      endLoop();
    }
    await Promise.all(this.#work);
  }

  /** Ends all clients, and deletes all keys. @throws LockStoreError if Redis does not */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#isOver = true;
    for (const { end } of this.#contenders) end.abort();
    // A client that takes the place of a dead one adds more.
    for (let ended = 0; ended < this.#work.length;) {
      ended = this.#work.length;
      await Promise.allSettled(this.#work);
    }
    await Promise.all(this.#contenders.map(({ client }) => client.shutdown(0)));
    const keys = this.#contenders[0]?.store.keys;
    if (!keys) return;
    const ofLocks = TASKS.map(({ key }) => [keys.lock(key), keys.waiters(key), keys.fence(keys.lock(key))]);
    // In a cluster, each of them is in a slot of its own.
    for (const together of [...ofLocks, [keys.reports()]]) await this.session.store.run(CLEAN_UP, together, []);
  }

  #begin(work: Promise<void>): Promise<void> {
    // `run` throws it, at its end.
    work.catch(() => {});
    this.#work.push(work);
    return work;
  }

  async #join(): Promise<void> {
    if (this.#isOver) return;
    const { connection } = this.session;
    const instanceId = `try:${process.pid}:${this.#contenders.length + 1}`;
    const settings = { connection, keyPrefix: this.keyPrefix, instanceId, leaseMs: LEASE_MS };
    const store = new PacedStore(settings, this.#pace, SYSTEM_CLOCK, this.slow);
    const defaults = { leaseMs: LEASE_MS, unavailableMs: WAIT_MS };
    const contender = { store, client: new LockClient({ store, defaults }), end: new AbortController(), isDead: false };
    this.#contenders.push(contender);
    await this.#pace.turn(this.#greeting);
    if (!(await store.start(CONNECT_MS))) {
      throw new CliError('redis', `A client of doctor --try is ${store.connection.describeTrouble()}.`);
    }
    for (let caller = 0; caller < CALLERS_OF_CLIENT; caller++) {
      void this.#begin(this.#call(contender, new SeededRandom(this.seed * 1_000 + this.#callers++)));
    }
  }

  async #call(contender: Contender, random: SeededRandom): Promise<void> {
    while (!contender.end.signal.aborted) {
      await this.#lock(contender, DECK[Math.floor(random.fraction() * DECK.length)]!, random);
      await pause(SYSTEM_CLOCK, random.fraction() * HOLD_MS, contender.end.signal);
    }
  }

  async #lock(contender: Contender, { key, mode }: Task, random: SeededRandom): Promise<void> {
    const { client, end } = contender;
    const waitMs = random.fraction() < 0.2 ? Math.ceil(random.fraction() * HASTY_MS) : WAIT_MS;
    const holdMs = random.fraction() < 0.03 ? LONG_HOLD_MS : random.fraction() * HOLD_MS;
    const count = 1 + Math.floor(random.fraction() * (PERMITS - 1));
    const options = { waitMs, signal: end.signal };
    const isSemaphore = mode === 'semaphore';
    const asked = {
      key,
      mode: mode === 'read' ? 'shared' : isSemaphore ? mode : 'exclusive',
      ...(isSemaphore && { permits: count, total: PERMITS }),
      askedAt: now(),
    } as const;
    let lease: Lease;
    try {
      lease = isSemaphore
        ? await client.semaphore(key, { permits: PERMITS }).acquire({ ...options, count })
        : await client.acquire(key, { ...options, mode });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.refusals[error.code] = (this.refusals[error.code] ?? 0) + 1;
      // A client that died has withdrawn nothing.
      const isUnknown =
        error instanceof LockUnavailableError || (error instanceof LockAbortedError && contender.isDead);
      this.calls.push({ ...asked, endedAt: now(), end: isUnknown ? 'unknown' : 'refused' });
      return;
    }
    await this.#hold(contender, lease, holdMs, asked);
  }

  async #hold(
    contender: Contender,
    lease: Lease,
    holdMs: number,
    asked: Pick<TriedCall, 'key' | 'mode' | 'permits' | 'total' | 'askedAt'>,
  ): Promise<void> {
    const { signal } = lease;
    const { end } = contender;
    const at = now();
    let until = at;
    // Reads the clock first: so it ends too early rather than too late.
    const look = (seenAt = now()): void => {
      if (lease.isHeld()) until = seenAt + lease.remainingMs();
    };
    look(at);
    await this.#strike(contender);
    while (now() < at + holdMs && !end.signal.aborted && !signal.aborted) {
      await pause(SYSTEM_CLOCK, Math.min(HOLD_MS, at + holdMs - now()), end.signal);
      look();
    }
    const token = lease.fencingToken;
    const ended = (heldUntil: number, how: TriedCall['end']): void => {
      this.calls.push({ ...asked, lease: { at, token, heldUntil }, endedAt: now(), end: how });
    };
    if (contender.isDead) {
      look();
      // Another look would find out by itself that the lease has ended.
      const lost = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      if (!signal.aborted) await within(until - now() + 4 * LOSS_MS, lost);
      return ended(Math.min(until, now()), 'lost');
    }
    const heldUntil = now();
    if (!lease.isHeld()) return ended(Math.min(until, heldUntil), 'lost');
    try {
      await lease.release();
      ended(heldUntil, 'released');
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      ended(heldUntil, 'unconfirmed');
    }
  }

  /** A fault for this holder, if one is due: its connections break, or its client dies and another one comes. */
  async #strike(contender: Contender): Promise<void> {
    const { store, end, isDead } = contender;
    if (now() < this.#faultAt || isDead || this.#isOver || !store.connection.isConnected) return;
    this.#faultAt = now() + this.#faultEveryMs;
    const isDeadly = (this.faults.connections + this.faults.clients) % 3 === 1;
    if (isDeadly) {
      this.faults.clients++;
      contender.isDead = true;
      void store.close();
      end.abort();
      void this.#begin(this.#join());
      return;
    }
    this.faults.connections++;
    await this.#pace.turn(this.#greeting);
    for (const server of store.connection.servers()) server.reconnect();
    store.connection.replaceSubscriber();
  }

  #watchLoop(): () => void {
    let ranAt = now();
    const timer = setInterval(() => {
      const from = ranAt;
      ranAt = now();
      if (ranAt - from > BLOCKED_MS) this.slow.push({ from, to: ranAt });
    }, LOOP_MS);
    return () => clearInterval(timer);
  }
}
