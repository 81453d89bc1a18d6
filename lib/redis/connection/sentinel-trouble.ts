import { quoteResource } from '../../core/api/errors.js';

/** What ioredis says of every broken connection to a sentinel, whatever the reason. */
const CLOSED = /^(failed to connect to sentinel (\S+) because) (Connection is closed)\.?$/;

/** Who knows why a connection to the sentinel at "host:port" fails, if anybody does. */
export type SentinelReasons = (address: string) => string | undefined;

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
