import type { Redis, RedisOptions } from 'ioredis';
import { quoteResource } from '../../core/api/errors.js';
import { LockStoreError } from '../../core/store/lock-store.js';
import { describeServer } from '../script/address.js';
import { toStoreError } from '../script/failures.js';

/** What ioredis says of every broken connection to a sentinel, whatever the reason. */
const CLOSED = /^(failed to connect to sentinel (\S+) because) (Connection is closed)\.?$/;

/** Who knows why a connection to the sentinel at "host:port" fails, if anybody does. */
export type SentinelReasons = (address: string) => string | undefined;

/** What is wrong with a connection at the moment, for whoever wants to send a command. */
export class ConnectionTrouble {
  #lastError: LockStoreError | undefined;
  /** Redis refused a part of the handshake: the password, or the database. ioredis may be 'ready' all the same. */
  #isRefused = false;

  constructor(
    private readonly client: Redis,
    reasonOfSentinel?: SentinelReasons,
  ) {
    let wasHeard = false;
    let sentinelTrouble: string | undefined;
    client.on('connect', () => {
      this.#isRefused = false;
      // 'ready' says less: for ioredis 5 a connection is so before it has heard anything.
      if (!wasHeard) client.stream.once('data', () => (wasHeard = true));
    });
    client.on('sentinelError', ({ message }: Error) => {
      sentinelTrouble = explainSentinel(message, client.options.name, reasonOfSentinel);
    });
    client.on('error', (error: Error) => {
      if (error.message.startsWith('All sentinels are unreachable')) {
        // It says so each time it begins with the first one again, also where a sentinel has named a server that is down.
        if (sentinelTrouble !== undefined) this.#lastError = new LockStoreError('unknown', sentinelTrouble);
        sentinelTrouble = undefined;
        return;
      }
      sentinelTrouble = undefined;
      const sorted = toStoreError(error);
      const isSilent = !wasHeard && /ECONNRESET|connection broke/.test(sorted.message);
      this.#lastError = isSilent ? closedAtOnce(client.options) : sorted;
      this.#isRefused ||= error.name === 'ReplyError';
    });
    client.on('close', () => {
      if (!wasHeard) this.#lastError ??= closedAtOnce(client.options);
    });
    client.on('ready', () => {
      if (client.status === 'ready' && !this.#isRefused) this.#lastError = undefined;
    });
  }

  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** What went wrong last, if it has not gone right since. */
  get reason(): string | undefined {
    return this.#lastError?.message;
  }

  /** Until it is connected again, this is why. */
  note(error: LockStoreError): void {
    this.#lastError = error;
  }

  /** For a command that was not sent. */
  get error(): LockStoreError {
    const isFatal = this.#lastError?.failure === 'refused';
    return new LockStoreError(isFatal ? 'refused' : 'notExecuted', this.describe());
  }

  describe(): string {
    return `not connected to Redis at ${describeServer(this.client)}${this.reason ? ` (${this.reason})` : ''}`;
  }
}

/** The server ends each connection before it has said a word: it expects another kind of beginning. */
function closedAtOnce({ tls, sentinels, enableTLSForSentinelMode }: RedisOptions): LockStoreError {
  const isIgnored = sentinels && !enableTLSForSentinelMode;
  const toSpeakIt = sentinels ? 'give tls, and enableTLSForSentinelMode: true,' : 'use rediss:// or tls';
  const advice =
    tls && !isIgnored
      ? 'Where it wants to know the client, give tls: { cert, key } in the connection option'
      : `Where the port speaks TLS, ${toSpeakIt} in the connection option`;
  return new LockStoreError('unknown', `the server closes the connection at once. ${advice}`);
}

/** Why a sentinel did not name the primary, in words that help. */
export function explainSentinel(message: string, name: string | undefined, reasonOf?: SentinelReasons): string {
  const [, address] =
    /^connected to sentinel (\S+) successfully, but got an invalid reply: null$/.exec(message) ??
    /^failed to connect to sentinel (\S+) because ERR No such master with that name$/.exec(message) ??
    [];
  if (address) return `the sentinel at ${address} knows no primary ${quoteResource(name ?? '')}`;
  const [, what, unreached, closed] = CLOSED.exec(message) ?? [];
  if (unreached) return `${what} ${forSentinels(reasonOf?.(unreached) ?? closed!)}`;
  const isRefused = /NOAUTH|WRONGPASS|NOPERM|unauthenticated/.test(message);
  return `${message.replace(/\.$/, '')}${isRefused ? '. Give sentinelPassword, and sentinelUsername, in the connection option' : ''}`;
}

/** Advice that names the options of Redis, with those of its sentinels. */
function forSentinels(advice: string): string {
  return advice.replace('use rediss:// or tls', 'give sentinelTLS').replace('tls: {', 'sentinelTLS: {');
}
