import type { Redis, RedisOptions } from 'ioredis';
import { quoteResource } from '../../kernel/api/errors.js';
import { LockStoreError } from '../../kernel/store/store-error.js';
import { describeServer } from '../script/address.js';
import { toStoreError, WITHOUT_TLS } from '../script/failures.js';

/** The message of ioredis for every broken connection to a sentinel. It has no reason. */
const CLOSED = /^(failed to connect to sentinel (\S+) because) (Connection is closed)\.?$/;

/** Returns why a connection to the sentinel at "host:port" fails, if that is known. */
export type SentinelReasons = (address: string) => string | undefined;

/** The current problem of a connection, for the error of a command that cannot be sent. */
export class ConnectionTrouble {
  #lastError: LockStoreError | undefined;

  constructor(
    private readonly client: Redis,
    reasonOfSentinel?: SentinelReasons,
  ) {
    /** `true` once the server has sent anything: ever, and on this connection. */
    let wasHeard = false;
    let isHeard = false;
    let tooMany: LockStoreError | undefined;
    let sentinelTrouble: string | undefined;
    client.on('connect', () => {
      isHeard = false;
      // Not 'ready': ioredis 5 calls a connection ready before the server has sent anything.
      client.stream.once('data', (data: Buffer | string) => {
        isHeard = wasHeard = true;
        const [, message] = TOO_MANY_CLIENTS.exec(String(data)) ?? [];
        // Redis closes the connection after that, so most attempts see a broken connection and not these words.
        if (message) this.#lastError = tooMany = toStoreError({ name: 'ReplyError', message });
      });
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
      const isBroken = /ECONNRESET|EPIPE|connection broke/.test(sorted.message);
      const closed = tooMany ?? (isHeard ? undefined : closedAtOnce(client.options, wasHeard));
      this.#lastError = isBroken && closed ? closed : withTlsAdvice(sorted, client.options);
    });
    client.on('close', () => {
      if (!wasHeard) this.#lastError ??= closedAtOnce(client.options, wasHeard);
    });
    client.on('ready', () => {
      if (client.status === 'ready') this.#lastError = tooMany = undefined;
    });
  }

  /** The last problem; undefined if the connection has worked since. */
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
    const reason = this.reason ?? pendingStep(this.client);
    return `not connected to Redis at ${describeServer(this.client)}${reason ? ` (${reason})` : ''}`;
  }
}

const TOO_MANY_CLIENTS = /^-(ERR max number of clients[^\r\n]*)/;

function usesTls({ tls, sentinels, enableTLSForSentinelMode }: RedisOptions): boolean {
  return Boolean(tls) && (!sentinels || Boolean(enableTLSForSentinelMode));
}

/** A server without TLS does not answer a handshake. */
function withTlsAdvice(error: LockStoreError, options: RedisOptions): LockStoreError {
  if (!usesTls(options) || !/ETIMEDOUT/.test(error.message)) return error;
  return new LockStoreError(error.failure, `${error.message}. ${WITHOUT_TLS}`);
}

/** Returns the step that a connection is waiting for, while nothing has failed. */
function pendingStep({ status, stream, options }: Redis): string | undefined {
  if (status === 'connect') return 'connected, but the server has not answered yet';
  const isHandshake = status === 'connecting' && usesTls(options) && stream?.connecting === false && !stream.destroyed;
  return isHandshake ? `no TLS handshake yet. ${WITHOUT_TLS}` : undefined;
}

/** The server closes each connection before it has sent anything on it: it expects another handshake, or has no room. */
function closedAtOnce(options: RedisOptions, hasWorked: boolean): LockStoreError {
  const howToUseIt = options.sentinels ? 'set tls, and enableTLSForSentinelMode: true,' : 'use rediss:// or tls';
  const onTls = usesTls(options)
    ? 'If it requires a client certificate, set tls: { cert, key } in the connection option'
    : `If the port expects TLS, ${howToUseIt} in the connection option`;
  const others =
    'If a proxy such as twemproxy rejects commands, connect to Redis itself. Or Redis has reached maxclients';
  const advice = hasWorked ? others : `${onTls}. ${others}`;
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
  const advice = isRefused ? '. Set sentinelPassword, and sentinelUsername, in the connection option' : '';
  return `${message.replace(/\.$/, '')}${advice}`;
}

/** The advice for a connection to Redis, with the names of the options for sentinels. */
function forSentinels(advice: string): string {
  return advice
    .replace('use rediss:// or tls', 'set sentinelTLS')
    .replace('use redis://, without tls,', 'leave out sentinelTLS')
    .replace('tls: {', 'sentinelTLS: {');
}
