import type { Redis } from 'ioredis';
import { toStoreError } from '../script/failures.js';
import { backoff, type Clock, SYSTEM_CLOCK, type Timer } from '../../kernel/util/clock.js';

/** The credentials of a Redis user. */
export interface RedisCredentials {
  /** Without it, Redis uses the password for the user `default`. */
  username?: string;
  password: string;
  /**
   * The time until which Redis accepts the password: a `Date`, or epoch milliseconds. After four fifths of the time
   * until then, the provider is called again, and open connections send the new password to Redis. A password that has
   * already expired when the provider returns it is not sent, and the provider is called again. Without `expiresAt`,
   * the provider is called for new connections only.
   */
  expiresAt?: Date | number;
}

/** Returns the current credentials. Called before each connection is made, and before the credentials expire. */
export type CredentialsProvider = () => RedisCredentials | Promise<RedisCredentials>;

/** A provider that calls back when the credentials have changed. */
export interface PushingProvider extends CredentialsProvider {
  onChanged(listener: () => void): void;
  /** The listener is not called from now on. */
  end(): void;
}

const SHARE = 0.8;
/** The minimum interval between calls of the provider, whatever expiry it returns. */
const MIN_MS = 500;
/** The longest delay of a timer of Node, nearly 25 days. */
const MAX_MS = 2_147_483_647;
/** A new connection waits no longer than this for a provider that hangs, if the last credentials have not expired. */
const PATIENCE_MS = 3_000;
/** A provider that has not answered within this time is called again. */
const GIVEN_UP_MS = 30_000;
const FAILED = 'credentials() of the connection to Redis failed';
const PAUSE_MS = { first: 1_000, longest: 30_000 };
const WARN_EVERY_MS = 60_000;
/** A connection may break while it is replaced. When that happens so often in a row, it is a problem. */
const PASSING = 3;

/** The part of a client that is patched, the same in ioredis 5 and 6. */
interface ClientInside {
  readonly connector: ConnectorInside;
  /**
   * The part that the handshake of the present connection sends. ioredis copies it from the options when it connects.
   */
  readonly condition: {
    auth?: string | [username: string, password: string];
    readonly subscriber: unknown;
    readonly protocol?: number;
  };
}

interface ConnectorInside {
  /** `disconnect()` clears it, also while `connect()` waits. */
  connecting: boolean;
  connect(...args: unknown[]): Promise<Redis['stream']>;
}

interface Known {
  readonly username: string | undefined;
  readonly password: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

interface Attached {
  shown: Known | undefined;
  isShowing: boolean;
  /** Replaces a connection that listens to messages: it takes no AUTH. */
  readonly renew: (() => Promise<unknown>) | undefined;
}

/**
 * Credentials that change while the application runs, such as the tokens of a cloud. Each connection is made with the
 * present ones. Before they expire, open connections show the next ones by AUTH. If the provider or Redis refuses, the
 * open connections stay as they are: Redis keeps serving them.
 */
export class Credentials {
  #known: Known | undefined;
  #asking: Promise<Known> | undefined;
  #next: Timer | undefined;
  #failures = 0;
  #warnedAt = -Infinity;
  #problem: string | undefined;
  readonly #clients = new Map<Redis, Attached>();
  readonly #closing = new AbortController();

  /** @param warn takes a line for the log. It has no password in it, and comes once a minute at most */
  constructor(
    private readonly provider: CredentialsProvider,
    private readonly warn: (line: string) => void,
    private readonly clock: Clock = SYSTEM_CLOCK,
  ) {
    (provider as Partial<PushingProvider>).onChanged?.(() => this.#again(0));
  }

  /** Why the credentials cannot be renewed now; `undefined` if they can. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /**
   * Makes all connections of a client with the present credentials.
   *
   * @param renew replaces the present connection of a client that listens, without a gap
   */
  attach(client: Redis, renew?: () => Promise<void>): void {
    const { connector } = client as unknown as ClientInside;
    const connect = connector.connect.bind(connector);
    const attached: Attached = { shown: undefined, isShowing: false, renew };
    connector.connect = async (...args) => {
      connector.connecting = true;
      const known = await this.#forConnection(client, connector);
      // ioredis would make a connection that nothing ends.
      if (known === undefined) throw new Error('Connection is closed.');
      attached.shown = known;
      (client as unknown as ClientInside).condition.auth =
        known.username === undefined ? known.password : [known.username, known.password];
      return connect(...args);
    };
    client.on('connecting', () => this.#clients.set(client, attached));
    client.on('end', () => this.#clients.delete(client));
    // They may have been replaced while the connection was made.
    client.on('ready', () => this.#show(client, attached));
  }

  close(): void {
    this.#closing.abort();
    this.#next?.cancel();
    this.#clients.clear();
    (this.provider as Partial<PushingProvider>).end?.();
  }

  /** Resolves to `undefined` if the client is closed before that. */
  async #forConnection(client: Redis, connector: ConnectorInside): Promise<Known | undefined> {
    for (let tries = 1; ; tries++) {
      const asked = this.#ask().catch(() => undefined);
      let found = (await this.#within(PATIENCE_MS, asked)) ?? (this.#isValid() ? this.#known : undefined);
      if (!found && this.#asking && connector.connecting && !this.#closing.signal.aborted) {
        this.#problem ??= `${FAILED}: it has not answered for ${PATIENCE_MS / 1_000} s`;
        client.emit('error', new Error(this.#problem));
        found = await asked;
      }
      if (this.#closing.signal.aborted || !connector.connecting) return undefined;
      if (found) return found;
      client.emit('error', new Error(this.#problem));
      await this.#within(backoff(PAUSE_MS, tries), new Promise<undefined>(() => {}));
    }
  }

  #isValid(): boolean {
    return this.#known !== undefined && this.clock.wallNow() < this.#known.expiresAt;
  }

  /** Resolves with the promise, or to `undefined` after the time or when all is closed. */
  #within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve) => {
      const { signal } = this.#closing;
      const end = (value?: T): void => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
        resolve(value);
      };
      const onAbort = (): void => end();
      const timer = this.clock.setTimer(end, ms, { background: true });
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) end();
      void promise.then(end);
    });
  }

  /** Calls the provider, unless it is about to answer. @throws if it fails */
  #ask(): Promise<Known> {
    this.#asking ??= this.#call().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #call(): Promise<Known> {
    try {
      const given = await this.#within(GIVEN_UP_MS, callOf(this.provider));
      if (given === undefined) throw new Error(`it has not answered for ${GIVEN_UP_MS / 1_000} s`);
      if (given instanceof Error) throw given;
      const known = readCredentials(given.value);
      const expiredMs = this.clock.wallNow() - known.expiresAt;
      if (expiredMs >= 0) {
        throw new Error(
          `it returned credentials that expired ${Math.floor(expiredMs / 1_000)} s ago, by the clock of this machine`,
        );
      }
      const isRefused = [...this.#clients.values()].some(({ shown }) => shown && !isSame(shown, known));
      if (!isRefused || !isSame(this.#known, known)) this.#failures = 0;
      this.#problem = undefined;
      this.#take(known);
      return known;
    } catch (error) {
      this.#failed(`${FAILED}: ${this.#withoutSecrets(error)}`);
      throw error;
    }
  }

  #take(known: Known): void {
    this.#known = known;
    const lifeMs = known.expiresAt - this.clock.wallNow();
    this.#again(Number.isFinite(lifeMs) ? Math.min(MAX_MS, Math.max(MIN_MS, lifeMs * SHARE)) : undefined);
    for (const [client, attached] of this.#clients) this.#show(client, attached);
  }

  #again(delayMs: number | undefined): void {
    this.#next?.cancel();
    if (delayMs === undefined || this.#closing.signal.aborted) return;
    this.#next = this.clock.setTimer(() => void this.#ask().catch(() => {}), delayMs, { background: true });
  }

  /** @param isPassing whether the next attempt probably succeeds */
  #failed(why: string, isPassing = false): void {
    if (this.#closing.signal.aborted) return;
    const pauseMs = backoff(PAUSE_MS, ++this.#failures);
    // New connections call it anyway. Without open connections there is nothing to renew.
    this.#again(this.#known ? pauseMs : undefined);
    if (isPassing && this.#failures < PASSING) return;
    this.#problem = why;
    const now = this.clock.now();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.warn(`${why}. Open connections keep the last credentials, and credentials() will be called again.`);
  }

  /** Shows the present credentials on the open connection of a client, if it has shown others. */
  #show(client: Redis, attached: Attached): void {
    const known = this.#known;
    if (!known || client.status !== 'ready' || attached.isShowing || isSame(attached.shown, known)) return;
    const { shown } = attached;
    const { subscriber, protocol } = (client as unknown as ClientInside).condition;
    // With RESP2, a connection that listens takes no other commands.
    const renew = subscriber && protocol !== 3 ? attached.renew : undefined;
    const answer = renew ? renew() : authenticate(client, known);
    attached.isShowing = true;
    answer
      .then(
        () => {
          if (attached.shown === shown) attached.shown = known;
        },
        (error: unknown) => {
          // The connection broke: the next one is made with the present credentials.
          if (client.status !== 'ready') return;
          const why = renew ? 'a new connection for messages cannot be opened' : 'AUTH on an open connection failed';
          const sorted = toStoreError(error);
          this.#failed(`${why}: ${this.#withoutSecrets(sorted)}`, sorted.failure !== 'refused');
        },
      )
      .finally(() => {
        attached.isShowing = false;
        if (attached.shown !== shown) this.#show(client, attached);
      });
  }

  #withoutSecrets(error: unknown): string {
    const { message = String(error) } = (error ?? {}) as Partial<Error>;
    const secrets = [this.#known, ...[...this.#clients.values()].map(({ shown }) => shown)];
    const text = secrets.reduce((rest, secret) => (secret ? rest.replaceAll(secret.password, '***') : rest), message);
    return text.replace(/\.$/, '');
  }
}

function authenticate(client: Redis, { username, password }: Known): Promise<unknown> {
  return client.call('AUTH', ...(username === undefined ? [password] : [username, password]));
}

/** Never rejects. */
async function callOf(provider: CredentialsProvider): Promise<Error | { readonly value: unknown }> {
  try {
    return { value: await provider() };
  } catch (error) {
    return error instanceof Error ? error : new Error(String((error as Partial<Error> | undefined)?.message ?? error));
  }
}

/** The message has no value in it. */
function readCredentials(value: unknown): Known {
  const { username, password, expiresAt } = Object(value) as Partial<Record<keyof RedisCredentials, unknown>>;
  if (typeof password !== 'string' || password === '') throw new Error('it returned no password');
  if (username !== undefined && typeof username !== 'string')
    throw new Error('it returned a username that is not a string');
  const end = expiresAt === undefined ? Infinity : Number(expiresAt);
  if (Number.isNaN(end)) throw new Error('it returned an expiresAt that is neither a Date nor epoch milliseconds');
  return { username: username === '' ? undefined : username, password, expiresAt: end };
}

function isSame(a: Known | undefined, b: Known): boolean {
  return a?.password === b.password && a.username === b.username;
}
