import { formatDuration } from '../../../kernel/util/durations.js';
import { count } from '../../../kernel/util/plurals.js';
import { plainOrQuoted } from '../../../kernel/util/quoted.js';
import { failing, type Check, note, ok, unknown, warning } from './check.js';
import { evictionOf } from '../../../redis/health/eviction.js';
import { writesBeforeItAnswers } from '../../../redis/script/pairs.js';
import type { ServerFacts } from './server-facts.js';

const MIN_VERSION = [6, 2] as const;
/** Cron ticks of the default `maxClockSkewMs` still run, and labels are about right. */
const CLOCK_MS = 1_000;
/** A lock costs two round trips. */
const SLOW_MS = 50;
/** How full Redis may be. */
const FULL = 0.9;
const SURVIVE_RESTART =
  'Set restartQuarantineMs of RedisLockModule to the longest lease, or use appendonly yes and appendfsync always.';

/** What the facts of one server mean for locks. */
export function checksOf(facts: ServerFacts): Check[] {
  return [
    version(facts),
    role(facts),
    eviction(facts),
    memory(facts),
    persistence(facts),
    replicas(facts),
    clock(facts),
    roundTrip(facts),
  ].filter((check) => check !== undefined);
}

function version({ name, version }: ServerFacts): Check {
  if (name === undefined || version === undefined)
    return unknown('version', 'Redis does not report its version.', '+info');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < MIN_VERSION[0] || (major === MIN_VERSION[0] && minor < MIN_VERSION[1]);
  const named = `${name} ${plainOrQuoted(version)}`;
  if (!isOld) return ok('version', `${named}.`);
  return failing(
    'version',
    `${named} is too old: scripts of the locks fail.`,
    `Use Redis ${MIN_VERSION.join('.')} or later, or Valkey.`,
  );
}

/** A replica refuses to write, but the reason of the refusal names no remedy. */
function role({ info }: ServerFacts): Check | undefined {
  if (info.get('role') !== 'slave') return undefined;
  const fix = 'Connect to the primary, or write the connection by { sentinels, name } or { cluster }.';
  return failing('role', 'This server is a replica and rejects writes.', fix);
}

function eviction({ info }: ServerFacts): Check {
  const { policy, isPossible, evictedKeys } = evictionOf(info) ?? {};
  if (policy === undefined) return unknown('eviction', 'Redis does not report its maxmemory-policy.', '+info');
  if (policy === 'noeviction') return ok('eviction', 'maxmemory-policy is noeviction.');
  const fix = 'CONFIG SET maxmemory-policy noeviction, or keep locks in a Redis of their own.';
  const found = `maxmemory-policy is ${policy}: Redis may remove locks when it reaches maxmemory`;
  if (!isPossible) return note('eviction', `${found}. It has no maxmemory now, so it removes none.`, fix);
  const already = evictedKeys ? ` It has removed ${count(evictedKeys, 'key')} since it started.` : '';
  return warning('eviction', `${found}, and then two processes can hold the same lock.${already}`, fix);
}

function memory({ info }: ServerFacts): Check | undefined {
  const [used, most] = [Number(info.get('used_memory')), Number(info.get('maxmemory'))];
  if (!(most > 0)) return undefined;
  const share = `${Math.round((100 * used) / most)} % of maxmemory is used`;
  if (used < FULL * most) return ok('memory', `${share}.`);
  return warning(
    'memory',
    `${share}: when it is full, Redis ${evictionOf(info)?.isPossible ? 'removes keys' : 'refuses new locks'}.`,
    'Raise maxmemory, or remove other data.',
  );
}

function persistence({ info, save, fsync }: ServerFacts): Check {
  const check = 'persistence';
  if (!info.has('aof_enabled')) return unknown(check, 'Redis does not report how it persists its data.', '+info');
  if (info.get('rdb_last_bgsave_status') === 'err' || info.get('aof_last_write_status') === 'err') {
    const fix =
      'Check the Redis log and disk. With stop-writes-on-bgsave-error, Redis refuses locks until it can save again.';
    return warning(check, 'Redis could not save its data the last time.', fix);
  }
  if (info.get('aof_enabled') !== '1') {
    const how = save === undefined || save !== '' ? 'Redis writes no append-only file' : 'Redis saves nothing to disk';
    return note(check, `${how}: after a restart, it grants locks that processes still hold.`, SURVIVE_RESTART);
  }
  if (writesBeforeItAnswers(fsync)) return ok(check, 'Each lock is in the append-only file before it is granted.');
  const policy = fsync.get('appendfsync');
  const lost =
    policy === undefined
      ? 'unless appendfsync is always, which it does not show this user (+config|get)'
      : policy === 'always'
        ? 'with no-appendfsync-on-rewrite yes'
        : `with appendfsync ${policy}`;
  const found = `Locks survive a restart (append-only file), but a crash of the machine loses the latest ones ${lost}.`;
  return note(check, found, SURVIVE_RESTART);
}

function replicas({ info, save }: ServerFacts): Check | undefined {
  if (info.get('role') !== 'master') return undefined;
  const connected = Number(info.get('connected_slaves') ?? 0);
  if (connected === 0) return note('replicas', 'This server has no replica: locks are unavailable while it is down.');
  if (save === '' && info.get('aof_enabled') === '0') {
    const found = `${count(connected, 'replica')}, but this server saves nothing to disk: if it restarts before a failover, `;
    const fix =
      'Turn on its append-only file, or its automatic restart off. Or set restartQuarantineMs of RedisLockModule.';
    return note('replicas', `${found}the replicas copy its empty data, and locks are lost even with durability.`, fix);
  }
  const fix = 'Set durability of RedisLockModule: then a lock counts only once replicas have it.';
  return note(
    'replicas',
    `${count(connected, 'replica')}: a failover loses locks that have not reached the new primary yet.`,
    fix,
  );
}

function clock({ clock: seen }: ServerFacts): Check {
  if (seen === undefined)
    return failing('clock', 'Redis does not report its time, which scripts need.', 'Add +time to the Redis user.');
  const { aheadMs, uncertaintyMs } = seen;
  const awayMs = Math.abs(aheadMs);
  if (awayMs <= CLOCK_MS + uncertaintyMs) {
    return ok('clock', `Redis and this machine agree to within ${formatDuration(Math.max(awayMs, uncertaintyMs))}.`);
  }
  return warning(
    'clock',
    `The clock of Redis is ${formatDuration(awayMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} this machine.`,
    'Sync both with NTP. Leases do not depend on the clocks, but cron ticks are skipped if they differ by more than maxClockSkewMs.',
  );
}

function roundTrip({ clock: seen }: ServerFacts): Check | undefined {
  if (seen === undefined) return undefined;
  const { medianMs, slowestMs } = seen.roundTrips;
  const found = `The median is ${medianMs.toFixed(1)} ms, the slowest ${slowestMs.toFixed(1)} ms`;
  if (medianMs <= SLOW_MS) return ok('round trip', `${found}.`);
  return warning(
    'round trip',
    `${found}. Each lock takes two round trips.`,
    'Run Redis closer, or look at its load: SLOWLOG GET, INFO commandstats.',
  );
}
