import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { type LeaseLimit, type LockDefaults, MAX_LEASE_MS, MIN_LEASE_MS } from '../../core/api/lock-options.js';
import { checked, flag, integer, milliseconds, type OptionsOf, OptionTable } from '../../core/api/option-table.js';
import { checkInteger, describeValue } from '../../core/api/validation.js';
import { describeConnection, type RedisConnectionOption } from '../../redis/connection/connection-options.js';
import type { Durability } from '../../redis/durability/durability.js';
import { normalizeAddress } from '../../redis/script/address.js';

/** The options of a module whose locks are on several independent primaries. */
export interface QuorumOptions {
  /**
   * Several independent primaries instead of one `connection`. A lock is held by the votes of a majority of them. All
   * instances must state the same ones.
   *
   * @allowed 1 to 9 connections
   * @default none
   * @see docs/guide/quorum.md
   */
  quorum?: readonly RedisConnectionOption[];
  /**
   * With `quorum`: fencing tokens grow even if a minority of the nodes has failed. Costs one more round trip per lease.
   *
   * @default false
   */
  fencing?: boolean;
  /**
   * With `quorum`: how long one node may take to answer before the others decide without it.
   *
   * @allowed 10 ms to 60 s
   * @default `leaseMs` / 100, within 50 and 500
   */
  nodeTimeoutMs?: number;
}

/** Checked options, with their defaults. */
export interface ResolvedQuorum {
  /** A function, so that a log of the module or of its container shows no password. */
  readonly connections: () => readonly RedisConnectionOption[];
  /** The name of each node in messages. */
  readonly names: readonly string[];
  readonly fencing: boolean;
  readonly nodeTimeoutMs: number;
}

const MOST_NODES = 9;

export const QUORUM_OPTIONS = new OptionTable({
  quorum: checked<readonly RedisConnectionOption[]>(),
  fencing: flag().default(false),
  nodeTimeoutMs: milliseconds(10, 60_000),
} satisfies OptionsOf<QuorumOptions>);

/** @throws InvalidLockOptionsError that names the option and what is allowed, without a value that may hold a password */
export function resolveQuorum(options: QuorumOptions, leaseMs: number): ResolvedQuorum | undefined {
  const { quorum, fencing, nodeTimeoutMs } = options;
  if (quorum === undefined) {
    if (fencing) throw invalid('fencing', 'fencing is for a quorum: on one Redis, fencing tokens grow without it');
    return undefined;
  }
  if (!Array.isArray(quorum))
    throw invalid('quorum', `quorum must be an array of connections, not ${describe(quorum)}`);
  if (quorum.length === 0 || quorum.length > MOST_NODES) {
    throw invalid('quorum', `quorum must have 1 to ${MOST_NODES} connections, not ${quorum.length}`);
  }
  const connections = quorum as readonly RedisConnectionOption[];
  const names = connections.map(checkNode);
  const seen = names.map(normalizeAddress);
  const twice = seen.findIndex((name, index) => seen.indexOf(name) !== index);
  if (twice !== -1) {
    throw invalid(
      'quorum',
      `quorum[${twice}] is ${names[twice]}, and so is quorum[${seen.indexOf(seen[twice]!)}]: the vote of one server ` +
        'must not count twice, and another database of the same server is not another server',
    );
  }
  return {
    connections: () => connections,
    names,
    fencing: fencing ?? false,
    nodeTimeoutMs: nodeTimeoutMs ?? Math.round(Math.min(500, Math.max(50, leaseMs / 100))),
  };
}

/** Returns the address of a node, for messages. @throws InvalidLockOptionsError */
function checkNode(connection: RedisConnectionOption, index: number): string {
  const option = `quorum[${index}]`;
  const { isCluster, cluster } = Object(connection) as { isCluster?: unknown; cluster?: unknown };
  if ((connection as unknown) === 'memory:') throw invalid('quorum', `${option} must be a Redis, not 'memory:'`);
  if (isCluster || Array.isArray(cluster)) {
    throw invalid(
      'quorum',
      `${option} must be one independent primary, not a Cluster: use the option connection for a Cluster`,
    );
  }
  try {
    return describeConnection(connection);
  } catch (error) {
    if (!(error instanceof InvalidLockOptionsError)) throw error;
    throw invalid('quorum', error.message.replace(/^connection/, option).replace(/\.$/, ''));
  }
}

/** Describes a value without its text, which may be a URL with a password. */
function describe(value: unknown): string {
  return typeof value === 'string' ? 'a string' : describeValue(value);
}

function invalid(option: string, message: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${message}.`, option);
}

export const DURABILITY_OPTIONS = new OptionTable({
  replicas: integer(1, 5, 'replicas').required(),
  timeoutMs: milliseconds(1, 10_000).default(50),
});

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function resolveDurability(
  durability: { replicas: number; timeoutMs?: number } | undefined,
  { leaseMs, attemptTimeoutMs }: LockDefaults,
): Durability | undefined {
  if (durability === undefined) return undefined;
  DURABILITY_OPTIONS.check('durability', durability, 'durability.');
  const { replicas, timeoutMs = DURABILITY_OPTIONS.defaults.timeoutMs } = durability;
  checkBelow(
    timeoutMs,
    attemptTimeoutMs,
    `attemptTimeoutMs (${attemptTimeoutMs})`,
    'otherwise each attempt would end first',
  );
  checkBelow(
    timeoutMs,
    leaseMs / 3,
    `a third of leaseMs (${leaseMs})`,
    'a lease is renewed after a third of it, and the renewal must be confirmed in time',
  );
  return { replicas, timeoutMs };
}

function checkBelow(timeoutMs: number, limitMs: number, limit: string, why: string): void {
  if (timeoutMs < limitMs) return;
  throw new InvalidLockOptionsError(
    `durability.timeoutMs must be less than ${limit}, not ${timeoutMs}: ${why}.`,
    'durability.timeoutMs',
  );
}

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function resolveQuarantine(restartQuarantineMs: number | undefined, { leaseMs }: LockDefaults): LeaseLimit {
  if (restartQuarantineMs === undefined || restartQuarantineMs === 0) return {};
  checkInteger('restartQuarantineMs', restartQuarantineMs, MIN_LEASE_MS, MAX_LEASE_MS);
  if (restartQuarantineMs >= leaseMs) return { restartQuarantineMs };
  throw new InvalidLockOptionsError(
    `restartQuarantineMs must be the longest lease of any application, so at least leaseMs (${leaseMs}), ` +
      `not ${restartQuarantineMs}.`,
    'restartQuarantineMs',
  );
}
