import type { LockHealth } from '../health/health-checks.js';
import type { Finding } from './finding.js';

/** `notTried`: the user may only look. */
export interface SeenHealth extends Pick<LockHealth, 'problems'> {
  readonly status: LockHealth['status'] | 'notTried';
}

/** The remedy for a problem of the health check, by its code. */
const REMEDIES: Readonly<Record<string, string>> = {
  READONLY: 'Connect to the primary, or write the connection as { sentinels, name } or { cluster }.',
  NOPERM: 'Run doctor: it prints the ACL rule that is missing.',
  NOAUTH: 'Put the user and the password into the connection.',
  WRONGPASS: 'Put the right user and password into the connection.',
  OOM: 'Raise maxmemory, or remove other data.',
  LOADING: 'Wait until Redis has loaded its data.',
  BUSY: 'End the script with SCRIPT KILL.',
  MASTERDOWN: 'Start the primary, or let a replica take over.',
  MISCONF: 'Check the Redis log and disk.',
  NOREPLICAS: 'Start the replicas, or lower min-replicas-to-write.',
  REPLICAS: 'Start the replicas, or lower durability.replicas in the module.',
  CLUSTERDOWN: 'See CLUSTER INFO and CLUSTER NODES.',
  NO_SERVER: 'See CLUSTER INFO and CLUSTER NODES.',
  WRONGTYPE: 'Give the locks a keyPrefix of their own.',
  SLOW: 'Check the load of Redis: SLOWLOG GET, INFO commandstats.',
  TIMEOUT: 'Check the load of Redis and the network: SLOWLOG GET, INFO commandstats.',
  EVICTION: 'CONFIG SET maxmemory-policy noeviction, or keep locks in a Redis of their own.',
  INBOX_REFUSED: 'Give the Redis user access to the lock channels: doctor prints the rule.',
  INBOX_LOSES: 'Check proxies between the application and Redis: they must let messages pass.',
  RESTART_QUARANTINE: 'Wait: locks are available again once restartQuarantineMs has passed since the restart.',
  SHUTDOWN: 'Do nothing: this instance is shutting down.',
};
const OTHER_REMEDY = 'Check the address, the password, TLS (rediss://), and the log of Redis.';

/** @param code of a problem of the health check */
export function remedyOf(code: string): string {
  return REMEDIES[code] ?? OTHER_REMEDY;
}

/** The same causes as the health check names. */
export function redisFindings({ status, problems }: SeenHealth): Finding[] {
  const isDown = status === 'down';
  const found = problems.map(({ code, message }, index): Finding => {
    // The first problem is the one that makes it unavailable.
    const isFatal = isDown && index === 0;
    return {
      severity: isFatal || code === 'EVICTION' ? 'critical' : 'warning',
      kind: isFatal ? 'redisDown' : 'redisProblem',
      sentence: isFatal ? `Locks are unavailable. ${message}` : message,
      action: { text: remedyOf(code), command: 'npx nestjs-redis-lock doctor' },
    };
  });
  // The same problem of several servers.
  return found.filter(({ sentence }, index) => found.findIndex((each) => each.sentence === sentence) === index);
}
