import { LockStoreError, type StoreFailure } from '../../core/store/lock-store.js';

/** Redis executed nothing and may do so later. */
const NOT_EXECUTED =
  /^(LOADING|BUSY|READONLY|MASTERDOWN|MISCONF|OOM|NOREPLICAS|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|NOSCRIPT|UNKILLABLE)$/;
/** Redis will go on refusing until somebody changes its configuration, its data, or ours. */
const REFUSED = /^(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|CROSSSLOT|ERR|EXECABORT)$/;

/** For what goes wrong before Redis can say anything, by the codes of Node. */
const TLS_ADVICE: readonly (readonly [codes: RegExp, advice: string])[] = [
  [
    /SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF|GET_ISSUER)/,
    'Give the certificate of its authority in the connection option: tls: { ca }',
  ],
  [/CERT_ALTNAME_INVALID/, 'Connect by a name that is in its certificate, or give that name: tls: { servername }'],
  [/CERTIFICATE_REQUIRED/, 'It wants to know the client: give tls: { cert, key } in the connection option'],
];

/** The ERRs that go away by themselves. */
const TOO_MANY_CLIENTS = /^ERR max number of clients/;
/** The slot of a cluster is about to move. A part of the script may have been executed. */
const KEY_HAS_MOVED = /^ERR Script attempted to access a non local key/;

const NOT_WRITTEN = /^Stream isn't writeable/;

/** What to do about a refusal, by its code. */
export type Advice = Readonly<Record<string, string>>;

/** For the refusals that people meet most. */
const ADVICE: Advice = {
  NOAUTH: 'Give the password in the connection option',
  WRONGPASS: 'Check user name and password in the connection option',
  NOPERM:
    'The ACL user needs EVALSHA, EVAL, SUBSCRIBE, the commands inside the scripts, and the keys and channels under keyPrefix',
  WRONGTYPE: 'A key of another kind stands where the lock would be; choose another keyPrefix or remove that key',
  OOM: 'Redis is out of memory (maxmemory); locks need a policy and a size that leave room for them',
  READONLY: 'This server is a read-only replica; connect to the primary',
};

/**
 * Sorts what ioredis rejects with by how far the command got. Only code and message are taken over: the error object of
 * ioredis holds the arguments of the command, and with them owner ids and passwords.
 *
 * @param ownAdvice where it differs from that for a lock
 */
export function toStoreError(error: unknown, ownAdvice?: Advice): LockStoreError {
  // Not instanceof: under Jest, an error of the network is made by another realm's Error.
  const { name, message = String(error) } = (error ?? {}) as Partial<Error>;
  if (name === 'MaxRetriesPerRequestError')
    return new LockStoreError('unknown', 'the connection broke before the reply');
  if (name !== 'ReplyError') {
    const said = `${message.trimEnd()}${tlsAdvice(error)}`;
    return new LockStoreError(NOT_WRITTEN.test(message) ? 'notExecuted' : 'unknown', said);
  }
  const code = replyCode(message);
  const advice = ownAdvice?.[code] ?? ADVICE[code];
  const failure = sortReply(code, message);
  return new LockStoreError(failure, `${shortenReply(message)}${advice ? `. ${advice}` : ''}`);
}

function tlsAdvice(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  const found = typeof code === 'string' ? TLS_ADVICE.find(([codes]) => codes.test(code)) : undefined;
  return found ? `. ${found[1]}` : '';
}

/** Whether ioredis never wrote the command: the connection is breaking, and its own message does not say why. */
export function isNotWritten(error: unknown): boolean {
  // Not instanceof, see toStoreError.
  return NOT_WRITTEN.test((error as Partial<Error> | undefined)?.message ?? '');
}

/** The error code of a reply. Before Redis 7 an error inside a script is wrapped, and its own code follows later. */
export function replyCode(message: string): string {
  // What Redis 7.0 says inside a script, where others say NOPERM.
  if (message.startsWith("ERR The user executing the script can't")) return 'NOPERM';
  // What Redis says to a long command on a connection without a password; ioredis 5 sends one, not having asked before.
  if (message.includes('unauthenticated')) return 'NOAUTH';
  const code = /^[A-Z]+/.exec(message)?.[0] ?? '';
  if (code !== 'ERR') return code;
  return /user_script: ?\d+: (?:-?ERR )?-?([A-Z]{3,})\b/.exec(message)?.[1] ?? code;
}

function sortReply(code: string, message: string): StoreFailure {
  if (KEY_HAS_MOVED.test(message)) return 'unknown';
  if (NOT_EXECUTED.test(code) || TOO_MANY_CLIENTS.test(message)) return 'notExecuted';
  return REFUSED.test(code) ? 'refused' : 'unknown';
}

/**
 * What Redis replied, without the script position that it appends, and without the arguments it repeats for a command it does
 * not know.
 */
export function shortenReply(message: string): string {
  return message
    .replace(/,? ?(?:script: [0-9a-f]{40}, )?on @user_script:\d+\.?$/, '')
    .replace(/,? with args beginning with:.*$/s, '')
    .replace(/\.$/, '');
}
