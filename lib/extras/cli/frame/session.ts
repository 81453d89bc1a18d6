import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { JobRecords } from '../../../features/jobs/core/job-records.js';
import { LockClient } from '../../../kernel/lock-client.js';
import { LOCK_DEFAULTS } from '../../../kernel/api/lock-options.js';
import { asStoreError } from '../../../kernel/store/store-error.js';
import { within } from '../../../kernel/util/promises.js';
import {
  describeConnection,
  type RedisConnectionOption,
  statedConnection,
} from '../../../redis/connection/connection-options.js';
import { createConnection } from '../../../redis/create-connection.js';
import { RedisJobStore } from '../../../features/jobs/redis/redis-job-store.js';
import { RedisLockStore } from '../../../redis/redis-lock-store.js';
import { DEFAULT_PREFIX, findPrefixes, type FoundPrefixes, onlyPrefix, type Target } from './connection.js';
import { OBSERVER_PREFIX } from '../../../features/fleet/core/roll/fleet-view.js';
import { CliError } from './exit-codes.js';
import { pauseFor } from './pause.js';

/** How long Redis may take, without `--timeout`. */
export const DEFAULT_TIMEOUT_MS = 5_000;
const CONNECT_PAUSE_MS = 50;
/** Who lacks all of these may look, and is meant to. */
const TO_CHANGE = ['+set', '+del'];

/** The locks of one application, from outside. */
export interface Session {
  readonly client: LockClient;
  readonly store: RedisLockStore;
  /** How to connect. It may have a password. */
  readonly connection: RedisConnectionOption;
  readonly jobs: JobRecords;
  readonly keyPrefix: string;
  /** Where Redis is, in words, without credentials. */
  readonly where: string;
  /** Whether its user lacks all rights to change a lock: such a user is meant to look. */
  mayOnlyLook(): Promise<boolean>;
  close(): Promise<void>;
}

/** `cli:host:pid:random`, so that it is not taken for an instance of an application. */
function cliInstanceId(): string {
  const host = hostname()
    .replace(/[^\w.-]/g, '_')
    .slice(0, 60);
  return `${OBSERVER_PREFIX}${host}:${process.pid}:${randomBytes(3).toString('hex')}`;
}

/** The applications that keep locks on one Redis. */
export interface Applications {
  /** Not set: the prefix was stated, or could not be looked for. */
  readonly found?: FoundPrefixes;
  readonly sessions: readonly Session[];
}

/**
 * Connects to the given application, or to the ones it finds, up to a limit.
 *
 * @param note told of a prefix that was found
 * @throws CliError when Redis cannot be reached within the time, or there are more applications than may be
 */
export async function openApplications(
  target: Target,
  timeoutMs: number,
  most: number,
  note: (line: string) => void,
): Promise<Applications> {
  const { connection, restartQuarantineMs } = target;
  const settings = {
    connection,
    instanceId: cliInstanceId(),
    leaseMs: LOCK_DEFAULTS.leaseMs,
    restartQuarantineMs,
    leavesGranting: true,
  };
  const open = (keyPrefix: string): Promise<Session> => openSession({ ...settings, keyPrefix }, timeoutMs);
  if (target.keyPrefix !== undefined) return { sessions: [await open(target.keyPrefix)] };
  const found = await lookForPrefixes(settings, timeoutMs, note);
  if (!found) return { sessions: [await open(DEFAULT_PREFIX)] };
  if (most === 1) return { found, sessions: [await open(onlyPrefix(found))] };
  const prefixes = found.prefixes.length === 0 ? [DEFAULT_PREFIX] : found.prefixes.slice(0, most);
  const opened = await Promise.allSettled(prefixes.map(open));
  const sessions = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const failed = opened.find((each) => each.status === 'rejected');
  if (!failed) return { found, sessions };
  await Promise.all(sessions.map((each) => each.close()));
  throw failed.reason;
}

async function openSession(
  settings: ConstructorParameters<typeof RedisLockStore>[0] & { readonly keyPrefix: string },
  timeoutMs: number,
): Promise<Session> {
  const { keyPrefix, connection } = settings;
  const store = new RedisLockStore(settings);
  const defaults = { attemptTimeoutMs: timeoutMs, restartQuarantineMs: settings.restartQuarantineMs };
  const client = new LockClient({ store, defaults, suspiciousNames: 'allow' });
  const close = (): Promise<void> => client.shutdown(0);
  if (!(await store.start(timeoutMs))) {
    const trouble = store.connection.describeTrouble();
    await close();
    throw unreachable(trouble);
  }
  const where = describeConnection(statedConnection(connection).model);
  const mayOnlyLook = async (): Promise<boolean> => {
    const rights = await store.missingRights();
    return rights.some(({ needed }) => TO_CHANGE.every((rule) => needed.includes(rule)));
  };
  const jobs = client.jobs.records(new RedisJobStore(store));
  return { client, store, connection, jobs, keyPrefix, where, mayOnlyLook, close };
}

async function lookForPrefixes(
  settings: Parameters<typeof createConnection>[0],
  timeoutMs: number,
  note: (line: string) => void,
): Promise<FoundPrefixes | undefined> {
  const connection = createConnection(settings);
  try {
    const giveUpAt = performance.now() + timeoutMs;
    await connected(connection, timeoutMs);
    const found = await findWithin(giveUpAt, connection, note);
    if (found?.prefixes.length === 0) {
      note(`No application keeps locks in this Redis yet. Using the prefix ${DEFAULT_PREFIX}.`);
    }
    return found;
  } finally {
    await connection.close();
  }
}

/** Asks again while a node of a cluster is not connected yet. @returns `undefined` where the user may not look */
async function findWithin(
  giveUpAt: number,
  connection: ReturnType<typeof createConnection>,
  note: (line: string) => void,
): Promise<FoundPrefixes | undefined> {
  for (;;) {
    try {
      return await findPrefixes(connection);
    } catch (error) {
      const { failure, message } = asStoreError(error);
      if (failure === 'refused') {
        note(`The prefix cannot be detected (${message}). Pass --prefix, or give the Redis user +scan.`);
        return undefined;
      }
      if (failure !== 'notExecuted' || performance.now() >= giveUpAt) throw error;
      await pauseFor(CONNECT_PAUSE_MS);
    }
  }
}

/** @throws CliError */
async function connected(connection: ReturnType<typeof createConnection>, timeoutMs: number): Promise<void> {
  const ready = new Promise<true>((resolve) => connection.onConnected(() => resolve(true)));
  connection.connect();
  if (!(await within(timeoutMs, ready))) throw unreachable(connection.describeTrouble());
}

function unreachable(trouble: string): CliError {
  return new CliError('redis', `The command line is ${trouble}.`);
}
