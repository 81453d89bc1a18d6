import { isMainThread } from 'node:worker_threads';
import type { Logger } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { formatDuration } from '../../kernel/util/durations.js';
import { loggerOf, see } from './logger-of.js';
import { isUnclaimed } from '../../features/jobs/core/tick-claims.js';

const ACL_PAGE = 'See docs/operations/acl.md.';

/** Rules of the ACL that a Redis user lacks. Locks work without the helpful ones. */
interface MissingRules {
  readonly needed: readonly string[];
  readonly helpful: readonly string[];
}

/** Logs problems at the start. The application starts anyway. */
export class StartLog {
  readonly #logger: Logger;

  constructor(name: string) {
    this.#logger = loggerOf(name);
  }

  unreachable(trouble: string): void {
    this.#logger.warn(
      `The application starts, but it is ${trouble}. It keeps trying to connect. Until it is connected, ` +
        `locks fail with LockUnavailableError. ${see('the-application-starts')}`,
    );
  }

  unreachableNodes(nodes: number, troubles: readonly string[]): void {
    const effect =
      troubles.length <= (nodes - 1) / 2
        ? 'A majority can be reached, so locks work'
        : 'Until a majority can be reached, locks fail with LockUnavailableError';
    this.#logger.warn(
      `The application starts, but ${troubles.length} of ${nodes} nodes cannot be reached: ${troubles.join('; ')}. ` +
        `${effect}. ${see('the-application-starts')}`,
    );
  }

  /** Logs that the servers are connected which were unreachable at the start. */
  connected(servers: number, afterMs: number): void {
    const what = servers === 1 ? 'Redis' : `all ${servers} nodes`;
    this.#logger.log(`Connected to ${what}, ${formatDuration(afterMs)} after the start.`);
  }

  /** Logs problems of a new connection: credentials that cannot be renewed, a server that has restarted. */
  readonly connection = (line: string, section = 'the-application-starts'): void =>
    this.#logger.warn(`${line} ${see(section)}`);

  inMemory(): void {
    this.#logger.warn(
      "connection: 'memory:' keeps the locks in this process: no other process sees them, and jobs run on every " +
        'instance. It is meant for tests, but NODE_ENV is production. Set connection to the URL of a Redis. ' +
        see('the-application-starts'),
    );
  }

  testLocks(): void {
    this.#logger.warn(
      'nestjs-redis-lock/testing keeps the locks in this process: no other process sees them. It is meant for tests, ' +
        `but NODE_ENV is production. Import RedisLockModule with the URL of a Redis. ${see('the-application-starts')}`,
    );
  }

  /**
   * Logs the missing rights of the Redis user. An error, because locks fail; but rights can be granted while the
   * application runs.
   */
  missingRights({ needed, helpful }: MissingRules, servers: readonly string[]): void {
    const user = `The Redis user at ${servers.join(', ')}`;
    if (needed.length > 0) {
      this.#logger.error(
        `${user} lacks permissions that locks need: ${needed.join(' ')}. Calls that need them fail with ` +
          `LockUnavailableError. Add these rules with ACL SETUSER; no restart is needed. ${ACL_PAGE}`,
      );
    }
    if (helpful.length > 0) {
      this.#logger.warn(
        `${user} lacks optional permissions: ${helpful.join(' ')}. Waiters may notice a free lock up to a second ` +
          'late, or never while other instances want it too, and errors may not name the holders. ' +
          ACL_PAGE,
      );
    }
  }

  /**
   * Logs a cluster node that is connected as a single Redis. An error, because each call fails until the connection
   * names the cluster.
   */
  nodeOfCluster(server: string): void {
    this.#logger.error(
      `The Redis at ${server} is a node of a Redis Cluster, and the connection names one Redis: locks fail with CROSSSLOT. ` +
        `Write { cluster: [...] } with its nodes as the connection. See docs/operations/topologies.md.`,
    );
  }

  /** One line, however many servers there are. */
  evicting(servers: readonly { readonly server: string; readonly policy: string }[]): void {
    if (servers.length === 0) return;
    const policies = [...new Set(servers.map(({ policy }) => policy))].join(', ');
    this.#logger.warn(
      `Redis at ${servers.map(({ server }) => server).join(', ')} removes keys when its memory is full ` +
        `(maxmemory-policy ${policies}): if one is a lock that is held, two processes can hold the same lock. Set ` +
        'maxmemory-policy to noeviction, or keep the locks in a Redis of their own. ' +
        see('the-application-starts'),
    );
  }

  noInbox(why: string): void {
    this.#logger.warn(
      `Waiters get no messages from Redis: ${why}. They poll every second instead, and releases skip them: ` +
        'while other instances want the same locks, they may get none of them. Let the Redis user subscribe; no restart ' +
        `is needed, because the instance tries again every 10 s. ${ACL_PAGE}`,
    );
  }
}

/** The logger that the scheduler uses for errors of jobs. */
interface SchedulerLogger {
  error(...args: readonly unknown[]): unknown;
}

const muted = new WeakSet<SchedulerLogger>();

/**
 * Keeps the scheduler from logging ticks that could not be claimed, each with its stack: the log of the lock service
 * counts these failures. The promise still rejects for decorators above and for callers.
 *
 * The scheduler's logger is private. If a later version has another one, such ticks are logged again.
 */
export function muteUnclaimedTicks(discovery: DiscoveryService): void {
  for (const { name, instance } of discovery.getProviders()) {
    if (name !== 'ScheduleExplorer') continue;
    const logger = (instance as { logger?: SchedulerLogger } | undefined)?.logger;
    if (typeof logger?.error !== 'function' || muted.has(logger)) continue;
    muted.add(logger);
    const write = logger.error.bind(logger);
    logger.error = (...args) => (isUnclaimed(args[0]) ? undefined : write(...args));
  }
}

/** The delay of the check after the start: `enableShutdownHooks()` may be called after `listen()`. */
const AFTER_MS = 1_000;

/**
 * Logs once that the process has no listener for the signal that stops it. Nest cannot report whether shutdown hooks
 * are enabled; but without any listener, Node ends the process, and Nest closes nothing.
 */
export function hintAtShutdownHooks(logger: Logger, leaseMs: number, closing: AbortSignal): void {
  // Windows has no such signal, and a worker gets none.
  if (process.platform === 'win32' || !isMainThread) return;
  const look = (): void => {
    if (process.listenerCount('SIGTERM') > 0) return;
    logger.log(
      `Nothing listens for SIGTERM: the signal will end this process without releasing its locks. They stay ` +
        `locked for up to ${formatDuration(leaseMs)} (leaseMs). Call app.enableShutdownHooks(). ` +
        (isServer() ? '' : 'When your work is done, call app.close(): connections to Redis keep the process alive. ') +
        `See docs/guide/getting-started.md#development.`,
    );
  };
  if (closing.aborted) return;
  const timer = setTimeout(look, AFTER_MS).unref();
  closing.addEventListener('abort', () => clearTimeout(timer), { once: true });
}

/** Returns true if the process listens on a port. Otherwise it may be a script that nothing stops by a signal. */
function isServer(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(TCP|Pipe)ServerWrap$/.test(name));
}
