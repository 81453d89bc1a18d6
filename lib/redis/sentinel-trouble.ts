import { quoteResource } from '../core/errors.js';

/** What ioredis says of a sentinel. It says of every broken connection that it is closed, and of none why. */
const NOT_CONNECTED = /^failed to connect to sentinel (\S+) because (.*?)\.?$/;
const CLOSED = 'Connection is closed';

/** Who knows why a connection to the sentinel at "host:port" fails, if anybody does. */
export type SentinelReasons = (address: string) => string | undefined;

/** Why a sentinel did not name the primary, in words that help. */
export function explainSentinel(message: string, name: string | undefined, reasonOf?: SentinelReasons): string {
  const [, address] =
    /^connected to sentinel (\S+) successfully, but got an invalid reply: null$/.exec(message) ??
    /^failed to connect to sentinel (\S+) because ERR No such master with that name$/.exec(message) ??
    [];
  if (address) return `the sentinel at ${address} knows no primary ${quoteResource(name ?? '')}`;
  const [, unreached, reason] = NOT_CONNECTED.exec(message) ?? [];
  if (unreached && reason === CLOSED) {
    return `failed to connect to sentinel ${unreached} because ${forSentinels(reasonOf?.(unreached) ?? CLOSED)}`;
  }
  const isRefused = /NOAUTH|WRONGPASS|NOPERM|unauthenticated/.test(message);
  return `${message.replace(/\.$/, '')}${isRefused ? '. Give sentinelPassword, and sentinelUsername, in the connection option' : ''}`;
}

/** Advice that names the options of Redis, with those of its sentinels. */
function forSentinels(advice: string): string {
  return advice.replace('use rediss:// or tls', 'give sentinelTLS').replace('tls: {', 'sentinelTLS: {');
}
