import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { type LockDefaults, MAX_LEASE_MS, MIN_LEASE_MS } from '../../kernel/api/lock-options.js';
import { checkInteger, describeValue, Option, type OptionsOf, OptionTable } from '../../kernel/api/validation.js';
import type { RedisConnectionOption } from '../../redis/connection/connection-options.js';
import type { Durability } from '../../redis/durability/durable-connection.js';

/** The module option `quorum`: several independent primaries. */
export type QuorumOptions = {
  /**
   * The connections to the nodes of the quorum. List the same nodes on all instances.
   *
   * @allowed 1 to 9 connections
   * @see docs/guide/quorum.md
   */
  connections: readonly RedisConnectionOption[];
  /**
   * `true` keeps fencing tokens growing even if a minority of the nodes has failed. This costs one more round trip per
   * lease.
   *
   * @default false
   */
  fencing?: boolean;
  /**
   * The time that a node has to answer, before the other nodes decide without it.
   *
   * @allowed 10 ms to 60 s
   * @default `leaseMs` / 100, but at least 50 and at most 500
   */
  nodeTimeoutMs?: number;
};

export interface ResolvedQuorum {
  /** A function, so that a log of the module or of its container shows no password. */
  readonly connections: () => readonly RedisConnectionOption[];
  readonly fencing: boolean;
  readonly nodeTimeoutMs: number;
}

const MAX_NODES = 9;
/** The option that an error about a node names. */
export const NODES = 'quorum.connections';

export const QUORUM_OPTIONS = new OptionTable({
  connections: Option.checked<readonly RedisConnectionOption[]>().required(),
  fencing: Option.flag().default(false),
  nodeTimeoutMs: Option.milliseconds(10, 60_000),
} satisfies OptionsOf<QuorumOptions>);

/**
 * @throws InvalidLockOptionsError that names the option and what is allowed, without a value that may hold a password
 */
export function resolveQuorum(quorum: QuorumOptions | undefined, leaseMs: number): ResolvedQuorum | undefined {
  if (quorum === undefined) return undefined;
  if (typeof quorum !== 'object' || quorum === null || Array.isArray(quorum)) {
    const given = Array.isArray(quorum) ? 'an array' : describe(quorum);
    throw invalid(
      'quorum',
      `quorum must be an object with the nodes in it, quorum: { connections: [...] }, not ${given}`,
    );
  }
  QUORUM_OPTIONS.check('quorum', quorum, 'quorum.');
  const { connections, fencing, nodeTimeoutMs } = quorum;
  if (!Array.isArray(connections)) {
    throw invalid(NODES, `${NODES} must be an array of connections, not ${describe(connections)}`);
  }
  if (connections.length === 0 || connections.length > MAX_NODES) {
    throw invalid(NODES, `${NODES} must have 1 to ${MAX_NODES} connections, not ${connections.length}`);
  }
  (connections as readonly RedisConnectionOption[]).forEach(checkNode);
  return {
    connections: () => connections,
    fencing: fencing ?? QUORUM_OPTIONS.defaults.fencing,
    nodeTimeoutMs: nodeTimeoutMs ?? Math.round(Math.min(500, Math.max(50, leaseMs / 100))),
  };
}

/** @throws InvalidLockOptionsError for an option of a quorum at the top level */
export function checkIsInQuorum(options: object): void {
  const option = QUORUM_OPTIONS.names.find((name) => Object.hasOwn(options, name));
  if (option === undefined) return;
  throw invalid(
    option,
    `${option} is for a quorum: write quorum: { connections: [...], ${option === 'connections' ? '…' : option} }` +
      (option === 'fencing' ? '. On one Redis, fencing tokens grow without it' : ''),
  );
}

/** Checks a node without its address. */
function checkNode(connection: RedisConnectionOption, index: number): void {
  const option = `${NODES}[${index}]`;
  const { isCluster, cluster, rootNodes } = Object(connection) as Record<
    'isCluster' | 'cluster' | 'rootNodes',
    unknown
  >;
  if ((connection as unknown) === 'memory:') throw invalid(NODES, `${option} must be a Redis, not 'memory:'`);
  if (isCluster || Array.isArray(cluster ?? rootNodes)) {
    throw notOnePrimary(option);
  }
}

export function notOnePrimary(option: string): InvalidLockOptionsError {
  const advice = 'use the option connection for a Cluster';
  return invalid(NODES, `${option} must be one independent primary, not a Cluster: ${advice}`);
}

/** Describes a value without its text, which may be a URL with a password. */
function describe(value: unknown): string {
  return typeof value === 'string' ? 'a string' : describeValue(value);
}

export function invalid(option: string, message: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${message}.`, option);
}

export const DURABILITY_OPTIONS = new OptionTable({
  replicas: Option.integer(1, 5, 'replicas').required(),
  timeoutMs: Option.milliseconds(1, 10_000).default(50),
});

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

/** @throws InvalidLockOptionsError for an option that would change nothing */
export function checkPersistence(persistence: 'always' | undefined, restartQuarantineMs: number | undefined): void {
  if (persistence === undefined || restartQuarantineMs !== undefined) return;
  throw new InvalidLockOptionsError(
    'persistence has no effect without restartQuarantineMs: locks are granted at once after a restart anyway.',
    'persistence',
  );
}

export function resolveQuarantine(restartQuarantineMs: number | undefined, { leaseMs }: LockDefaults) {
  if (restartQuarantineMs === undefined || restartQuarantineMs === 0) return {};
  checkInteger('restartQuarantineMs', restartQuarantineMs, MIN_LEASE_MS, MAX_LEASE_MS);
  if (restartQuarantineMs >= leaseMs) return { restartQuarantineMs };
  throw new InvalidLockOptionsError(
    `restartQuarantineMs must be the longest lease of any application, so at least leaseMs (${leaseMs}), ` +
      `not ${restartQuarantineMs}.`,
    'restartQuarantineMs',
  );
}
