import type { Redis, RedisOptions } from 'ioredis';
import { quoteResource } from '../../core/api/errors.js';
import { LockStoreError } from '../../core/store/store-error.js';
import { describeServer } from '../script/address.js';
import { toStoreError } from '../script/failures.js';

/** The message of ioredis for every broken connection to a sentinel. It does not say the reason. */
const CLOSED = /^(failed to connect to sentinel (\S+) because) (Connection is closed)\.?$/;

/** Returns why a connection to the sentinel at "host:port" fails, if that is known. */
export type SentinelReasons = (address: string) => string | undefined;

/** What is wrong with a connection at the moment, for the error of a command that cannot be sent. */
export class ConnectionTrouble {
  #lastError: LockStoreError | undefined;

  constructor(
    private readonly client: Redis,
    reasonOfSentinel?: SentinelReasons,
  ) {
    let wasHeard = false;
    let sentinelTrouble: string | undefined;
    client.on('connect', () => {
      // Not 'ready': ioredis 5 calls a connection ready before the server has sent anything.
      if (!wasHeard) client.stream.once('data', () => (wasHeard = true));
    });
    client.on('sentinelError', ({ message }: Error) => {
      sentinelTrouble = explainSentinel(message, client.options.name, reasonOfSentinel);
    });
    client.on('error', (error: Error) => {
      if (error.message.startsWith('All sentinels are unreachable')) {
        // ioredis reports this each time it starts again with the first sentinel, even if a sentinel has named a server
        // that is down.
        if (sentinelTrouble !== undefined) this.#lastError = new LockStoreError('unknown', sentinelTrouble);
        sentinelTrouble = undefined;
        return;
      }
      sentinelTrouble = undefined;
      const sorted = toStoreError(error);
      const isSilent = !wasHeard && /ECONNRESET|connection broke/.test(sorted.message);
      this.#lastError = isSilent ? closedAtOnce(client.options) : sorted;
    });
    client.on('close', () => {
      if (!wasHeard) this.#lastError ??= closedAtOnce(client.options);
    });
    client.on('ready', () => {
      if (client.status === 'ready') this.#lastError = undefined;
    });
  }

  /** What went wrong last; undefined if the connection has worked since. */
  get reason(): string | undefined {
    return this.#lastError?.message;
  }

  /** Keeps this error as the reason until the connection works again. */
  note(error: LockStoreError): void {
    this.#lastError = error;
  }

  get error(): LockStoreError {
    const isFatal = this.#lastError?.failure === 'refused';
    return new LockStoreError(isFatal ? 'refused' : 'notExecuted', this.describe());
  }

  describe(): string {
    return `not connected to Redis at ${describeServer(this.client)}${this.reason ? ` (${this.reason})` : ''}`;
  }
}

/** The server closes each connection before it has sent anything: it expects another handshake. */
function closedAtOnce({ tls, sentinels, enableTLSForSentinelMode }: RedisOptions): LockStoreError {
  const isIgnored = sentinels && !enableTLSForSentinelMode;
  const howToUseIt = sentinels ? 'give tls, and enableTLSForSentinelMode: true,' : 'use rediss:// or tls';
  const advice =
    tls && !isIgnored
      ? 'If it requires a client certificate, give tls: { cert, key } in the connection option'
      : `If the port expects TLS, ${howToUseIt} in the connection option`;
  return new LockStoreError('unknown', `the server closes the connection at once. ${advice}`);
}

/** Why a sentinel did not name the primary, with advice. */
export function explainSentinel(message: string, name: string | undefined, reasonOf?: SentinelReasons): string {
  const [, address] =
    /^connected to sentinel (\S+) successfully, but got an invalid reply: null$/.exec(message) ??
    /^failed to connect to sentinel (\S+) because ERR No such master with that name$/.exec(message) ??
    [];
  if (address) return `the sentinel at ${address} knows no primary ${quoteResource(name ?? '')}`;
  const [, what, unreached, closed] = CLOSED.exec(message) ?? [];
  if (unreached) return `${what} ${forSentinels(reasonOf?.(unreached) ?? closed!)}`;
  const isRefused = /NOAUTH|WRONGPASS|NOPERM|unauthenticated/.test(message);
  const advice = isRefused ? '. Give sentinelPassword, and sentinelUsername, in the connection option' : '';
  return `${message.replace(/\.$/, '')}${advice}`;
}

/** The advice for a connection to Redis, with the names of the options for sentinels. */
function forSentinels(advice: string): string {
  return advice.replace('use rediss:// or tls', 'give sentinelTLS').replace('tls: {', 'sentinelTLS: {');
}
