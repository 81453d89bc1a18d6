import { ClusterConnection } from './topology/cluster-connection.js';
import type { Connection } from './connection/connection.js';
import {
  isCluster,
  type RedisConnectionOption,
  type StatedConnection,
  statedConnection,
} from './connection/connection-options.js';
import { Credentials } from './connection/credentials.js';
import type { Durability } from './durability/durable-connection.js';
import { OwnClients } from './connection/own-clients.js';
import { PrimaryConnection } from './topology/primary-connection.js';
import { LeavesGranting, RestartQuarantine } from './script/restart-quarantine.js';
import type { ScriptSender } from './script/script.js';
import { ScriptRunner } from './script/script-runner.js';

/** Settings of an instance's connections, and its demands on the servers. */
export interface ConnectionSettings {
  readonly connection: RedisConnectionOption;
  readonly instanceId: string;
  /** The default lease, in milliseconds. The pause before a reconnect is never longer than a third of it. */
  readonly leaseMs: number;
  /** Grants count only when this many replicas have them. */
  readonly durability?: Durability | undefined;
  /**
   * The longest lease of any process, in milliseconds. A server that may have forgotten leases grants nothing for this
   * long after its start.
   */
  readonly restartQuarantineMs?: number | undefined;
  /**
   * Without `restartQuarantineMs`: the waiters of other processes ask for what this one frees, because they know their
   * `restartQuarantineMs`.
   *
   * @default false
   */
  readonly leavesGranting?: boolean | undefined;
  /** A server with data has every write that it has ever answered: then there is no such time after its start. */
  readonly persistence?: 'always' | undefined;
  /** `true` if the connections leave the process free to exit until `keepAlive()` is called. @default false */
  readonly inBackground?: boolean | undefined;
  /**
   * Takes lines for the log, and the section of the page on the log that explains one. @default warnings of the process
   */
  readonly warn?: ((line: string, section?: string) => void) | undefined;
}

/**
 * @param stated what the option `connection` states, if the caller has read it
 * @throws InvalidLockOptionsError if the option does not describe a Redis connection
 */
export function createConnection(
  settings: ConnectionSettings,
  { model, credentials }: StatedConnection = statedConnection(settings.connection),
): Connection {
  const { instanceId, leaseMs, durability, inBackground } = settings;
  const { warn = (line) => process.emitWarning(line, 'RedisLockWarning') } = settings;
  const clients = new OwnClients(leaseMs, inBackground, credentials && new Credentials(credentials, warn));
  const scripts = createSender(settings, warn);
  return isCluster(model)
    ? new ClusterConnection(model, instanceId, leaseMs, scripts, clients, durability)
    : new PrimaryConnection(model, instanceId, leaseMs, scripts, clients, durability);
}

function createSender(
  { restartQuarantineMs, persistence, leavesGranting }: ConnectionSettings,
  warn: NonNullable<ConnectionSettings['warn']>,
): ScriptSender {
  const runner = new ScriptRunner();
  if (restartQuarantineMs === undefined) return leavesGranting ? new LeavesGranting(runner) : runner;
  const isPersistent = persistence === 'always';
  return new RestartQuarantine(runner, { longestLeaseMs: restartQuarantineMs, isPersistent, warn });
}
