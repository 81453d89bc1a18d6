import type { Script } from './script.js';
import * as SCRIPTS from './scripts.js';
import { LockStoreError, type StoreFailure } from '../../kernel/store/store-error.js';

/** Redis has executed nothing, and may accept the command later. */
const NOT_EXECUTED =
  /^(LOADING|BUSY|READONLY|MASTERDOWN|MISCONF|OOM|NOREPLICAS|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|NOSCRIPT|UNKILLABLE)$/;
/** Redis will keep refusing until its configuration, its data or the application is changed. */
const REFUSED = /^(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|CROSSSLOT|ERR|EXECABORT)$/;

export const WITHOUT_TLS = 'If the port expects no TLS, use redis://, without tls, in the connection option';

/** Advice on what goes wrong before Redis can reply, by the error codes of Node. */
const TLS_ADVICE: readonly (readonly [codes: RegExp, advice: string])[] = [
  [
    /SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF|GET_ISSUER)/,
    'Set the CA certificate in the connection option: tls: { ca }',
  ],
  [
    /CERT_ALTNAME_INVALID/,
    'Connect by a name that is in its certificate, or set that name as the connection option tls: { servername }',
  ],
  [/CERTIFICATE_REQUIRED/, 'The server requires a client certificate: set tls: { cert, key } in the connection option'],
  [/WRONG_VERSION_NUMBER/, WITHOUT_TLS],
];

/** An ERR that goes away by itself. */
const TOO_MANY_CLIENTS = /^ERR max number of clients/;
/** A slot of the cluster is moving. A part of the script may have been executed. */
const KEY_HAS_MOVED = /^ERR Script attempted to access a non local key/;

const NOT_WRITTEN = /^Stream isn't writeable/;

/** The remedy for a refusal, by its error code. */
export type Advice = Readonly<Record<string, string>>;

const ADVICE: Advice = {
  NOAUTH: 'Set the password in the connection option',
  WRONGPASS: 'Check the user name and password in the connection option',
  NOPERM:
    'The ACL user needs EVALSHA, EVAL, SUBSCRIBE, the commands inside the scripts, ' +
    'and the keys and channels of the locks',
  WRONGTYPE: 'A key of the lock holds a value of another type; choose another key or keyPrefix, or remove that key',
  OOM: 'Redis is out of memory; raise maxmemory, or keep less data beside the locks',
  READONLY: 'This server is a read-only replica; connect to the primary',
  CROSSSLOT: 'This server is a node of a Redis Cluster; write { cluster: [...] } with its nodes as the connection',
};

/**
 * Turns an error of ioredis into a `LockStoreError` with the progress of the command. Only the code and the message are
 * copied: the error object of ioredis contains the arguments of the command, and with them owner ids and passwords.
 *
 * @param ownAdvice advice that replaces the advice for locks, by error code
 */
export function toStoreError(error: unknown, ownAdvice?: Advice): LockStoreError {
  // Not instanceof: under Jest, network errors come from the Error class of another realm.
  const { name, message = String(error) } = (error ?? {}) as Partial<Error>;
  if (name === 'MaxRetriesPerRequestError')
    return new LockStoreError('unknown', 'the connection broke before the reply');
  if (name !== 'ReplyError') {
    const said = `${message.trimEnd()}${tlsAdvice(error)}`;
    return new LockStoreError(NOT_WRITTEN.test(message) ? 'notExecuted' : 'unknown', said);
  }
  const code = replyCode(message);
  const advice = ownAdvice?.[code] ?? adviceOn(code, message);
  const failure = sortReply(code, message);
  return new LockStoreError(failure, `${shortenReply(message)}${advice ? `. ${advice}` : ''}`);
}

/** Outside of a script, Redis names the command that it refused. */
const REFUSED_COMMAND = /\brun the '([\w|-]{1,60})' command/;

/** Outside of a script, Redis names the command. */
const UNKNOWN_COMMAND = /\bunknown (?:redis )?command\b(?:,? [`']([\w|-]{1,60})[`'])?/i;

function adviceOn(code: string, message: string): string | undefined {
  const [isUnknown, unknown = commandInScript(message)] = UNKNOWN_COMMAND.exec(message) ?? [];
  if (isUnknown) {
    return (
      `This server does not know ${unknown?.toUpperCase() ?? 'a command of the script'}: it was renamed, or the service ` +
      'leaves it out. See docs/operations/acl.md#renamed-and-missing-commands'
    );
  }
  if (/should be passed using the KEYS array/.test(message)) {
    return (
      'This service checks scripts for keys in Lua variables: set its parameter script_check_enable to 0. ' +
      'See docs/operations/topologies.md#managed-services'
    );
  }
  const [, command] = (code === 'NOPERM' && REFUSED_COMMAND.exec(message)) || [];
  return command === undefined ? ADVICE[code] : `Add the rule +${command} to the ACL user`;
}

/** Returns the commands in the script line that Redis reports as failed. */
function commandInScript(message: string): string | undefined {
  const [, sha] = /(?:f_|script: )([0-9a-f]{40})/.exec(message) ?? [];
  const [, line] = /@user_script: ?(\d+)/.exec(message) ?? [];
  const script = (Object.values(SCRIPTS) as Script[]).find((each) => each.sha === sha);
  const called = script?.lua.split('\n')[Number(line) - 1]?.matchAll(/\bredis\.p?call\('([A-Z]+)'/g) ?? [];
  return Array.from(called, ([, command]) => command).join(' or ') || undefined;
}

/** Returns the same error; advice for locks is replaced by other advice. */
export function withAdvice(error: LockStoreError, ownAdvice: Advice): LockStoreError {
  const code = replyCode(error.message);
  const own = ownAdvice[code];
  if (own === undefined) return error;
  return new LockStoreError(error.failure, error.message.replace(adviceOn(code, error.message) ?? '', own));
}

function tlsAdvice(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  const found = typeof code === 'string' ? TLS_ADVICE.find(([codes]) => codes.test(code)) : undefined;
  return found ? `. ${found[1]}` : '';
}

/** Returns true if ioredis never wrote the command, because the connection is breaking. Its message has no reason. */
export function isNotWritten(error: unknown): boolean {
  // Not instanceof, see toStoreError.
  return NOT_WRITTEN.test((error as Partial<Error> | undefined)?.message ?? '');
}

/**
 * The error code of a reply. Before Redis 7, an error inside a script is wrapped, and its own code comes later in the
 * text.
 */
export function replyCode(message: string): string {
  // Inside a script, Redis 7.0 replies with this, other versions with NOPERM.
  if (message.startsWith("ERR The user executing the script can't")) return 'NOPERM';
  // The reply to a long command on a connection without a password, which ioredis 5 may send.
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
 * Returns Redis's reply without the position in the script that it appends, and without the arguments that it repeats
 * for an unknown command.
 */
export function shortenReply(message: string): string {
  const said = message.replace(/,? ?(?:script: [0-9a-f]{40}, )?on @user_script:\d+\.?$/, '');
  return withoutRepeatedArguments(said).replace(/\.$/, '');
}

/** Without the arguments that Redis repeats for a command that it does not know. */
export function withoutRepeatedArguments(message: string): string {
  return message.replace(/,? with args beginning with:.*$/s, '');
}
