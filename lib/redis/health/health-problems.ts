import type { LockStoreError } from '../../kernel/store/store-error.js';
import type { StoreProblem } from '../../kernel/store/store-probe.js';
import { quote } from '../../kernel/util/quoted.js';
import type { Eviction } from './eviction.js';
import type { MissingRights } from '../script/missing-rights.js';
import { replyCode } from '../script/failures.js';
import { RestartQuarantineError } from '../script/restart-quarantine.js';

/**
 * The meanings of the codes of Redis and Node. The texts are fixed: a health check may be public, and the messages of
 * errors name hosts, users and keys.
 */
const MEANINGS: Readonly<Record<string, string>> = {
  READONLY: 'This server is a replica and rejects writes.',
  NOPERM: 'The Redis user lacks permissions that locks need.',
  NOAUTH: 'Redis requires a password.',
  WRONGPASS: 'Redis rejects the user name or the password.',
  OOM: 'Redis is out of memory and rejects writes.',
  LOADING: 'Redis is loading its data.',
  BUSY: 'Redis runs a script that takes too long.',
  MASTERDOWN: 'This server is a replica that has lost its primary.',
  MISCONF: 'Redis cannot save its data and rejects writes.',
  NOREPLICAS: 'Redis has too few replicas and rejects writes.',
  CLUSTERDOWN: 'The Redis Cluster is down.',
  TRYAGAIN: 'A slot of the Redis Cluster is being moved.',
  WRONGTYPE: 'A lock key holds a value of another application.',
  ECONNREFUSED: 'No Redis listens at the address.',
  ECONNRESET: 'The connection to Redis was reset.',
  ENOTFOUND: 'The host name of Redis cannot be resolved.',
  EAI_AGAIN: 'The host name of Redis cannot be resolved now.',
  ETIMEDOUT: 'The connection to Redis timed out.',
  EHOSTUNREACH: 'The host of Redis cannot be reached.',
  ENOENT: 'The Redis socket does not exist.',
};

/** The replies that may be the reason why there is no connection, and the codes of Node. */
const REASON = /\b(READONLY|NOPERM|NOAUTH|WRONGPASS|LOADING|CLUSTERDOWN|E[A-Z]{4,}|EAI_AGAIN)\b/;

export const NO_INBOX: StoreProblem = {
  code: 'NO_INBOX',
  message: 'The connection for messages is not subscribed, so this process is skipped when it waits for a lock.',
  isFatal: true,
};

/** Locks are still granted, by asking. It is a decision of the operator, and the log of the start names it. */
export const INBOX_REFUSED: StoreProblem = {
  code: 'INBOX_REFUSED',
  message:
    'The Redis user has no permission to subscribe to the lock channels, so waiters notice late that a lock is free.',
  isFatal: false,
};

/** Locks are still granted, by asking. The connection is being replaced. */
export const INBOX_LOSES: StoreProblem = {
  code: 'INBOX_LOSES',
  message: 'Messages on the lock channels are lost, so waiters notice late that a lock is free.',
  isFatal: false,
};

/** Open connections keep the last ones. The log has the reason. */
export const OLD_CREDENTIALS: StoreProblem = {
  code: 'CREDENTIALS',
  message: 'The credentials for Redis cannot be renewed, so new connections may be refused.',
  isFatal: false,
};

/**
 * Why no lock can be taken, by the error of a store.
 *
 * @param fence the key of the fence. A health check reads no other key that another application may have written
 */
export function problemOf(error: LockStoreError, fence?: string): StoreProblem {
  const { message } = error;
  if (error instanceof RestartQuarantineError) {
    const what =
      'Redis has restarted and may have forgotten leases: it grants no locks until restartQuarantineMs has passed.';
    return fatal('RESTART_QUARANTINE', what);
  }
  if (/\bslot \d+/.test(message)) return fatal('NO_SERVER', 'No server of the Redis Cluster has some of the slots.');
  // The command WAIT has counted too few of them.
  if (/\breplicas?\b.*\bdurability\b/s.test(message))
    return fatal('REPLICAS', 'Too few replicas have confirmed a write (durability).');
  const isReply = !message.startsWith('not connected');
  const code = (isReply ? replyCode(message) : '') || REASON.exec(message)?.[1] || '';
  if (code === 'WRONGTYPE' && fence !== undefined) return fatal(code, foreignFence(fence));
  const meaning = MEANINGS[code];
  if (meaning !== undefined) return fatal(code, meaning);
  if (isReply && /^[A-Z]{3,20}$/.test(code)) return fatal(code, `Redis rejects writes (${code}).`);
  return fatal('NOT_CONNECTED', 'There is no connection to Redis.');
}

/**
 * Locks are granted, and may vanish while they are held.
 *
 * @param hasEvicted whether keys were removed since this process looked first
 */
export function problemsOfEviction({ policy, isPossible }: Eviction, hasEvicted: boolean): StoreProblem[] {
  if (!isPossible) return [];
  const what = hasEvicted ? 'Redis is full and removes keys' : 'Redis removes keys when its memory is full';
  const message = `${what} (maxmemory-policy ${policy}): if one is a lock that is held, two processes can hold the same lock.`;
  return [{ code: 'EVICTION', message, isFatal: false }];
}

/** Describes the missing permissions of the Redis user. Names commands, but no keys and channels. */
export function problemsOfRights({ needed, helpful }: Pick<MissingRights, 'needed' | 'helpful'>): StoreProblem[] {
  const problems: StoreProblem[] = [];
  if (needed.length > 0)
    problems.push(fatal('NOPERM', `The Redis user lacks permissions that locks need: ${named(needed)}.`));
  if (helpful.length > 0) {
    const message =
      `The Redis user lacks optional permissions: ${named(helpful)}. Waiters may notice late that a lock is free, ` +
      'and errors have less detail.';
    problems.push({ code: 'NOPERM', message, isFatal: false });
  }
  return problems;
}

/** No lock has this key, so it reveals no resource. */
function foreignFence(fence: string): string {
  return (
    `The key ${quote(fence)}, which numbers the locks, holds a value of another application. ` +
    'Delete it: the numbers continue above the old ones. Or give the locks another keyPrefix.'
  );
}

function named(rules: readonly string[]): string {
  const names = rules.map((rule) => {
    if (rule.startsWith('~')) return 'the keys';
    return rule.startsWith('&') ? 'the channels' : rule;
  });
  return names.join(', ');
}

function fatal(code: string, message: string): StoreProblem {
  return { code, message, isFatal: true };
}
