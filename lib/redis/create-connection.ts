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
import { RestartQuarantine } from './script/restart-quarantine.js';
import { ScriptRunner } from './script/script-runner.js';

/** How an instance connects, and what it demands of the servers. */
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
  /** A server with data has every write that it has ever answered: then there is no such time after its start. */
  readonly persistence?: 'always' | undefined;
  /** Whether the connections leave the process free to exit until `keepAlive()` is called. @default false */
  readonly inBackground?: boolean | undefined;
  /** Takes lines for the log. @default warnings of the process */
  readonly warn?: ((line: string) => void) | undefined;
}

/**
 * @param stated what the option `connection` states, if the caller has read it
 * @throws InvalidLockOptionsError if the option does not describe a Redis connection
 */
export function createConnection(
  settings: ConnectionSettings,
  { model, credentials }: StatedConnection = statedConnection(settings.connection),
): Connection {
  const { instanceId, leaseMs, durability, restartQuarantineMs: longestLeaseMs, inBackground } = settings;
  const { warn = (line) => process.emitWarning(line, 'RedisLockWarning') } = settings;
  const runner = new ScriptRunner();
  const clients = new OwnClients(leaseMs, inBackground, credentials && new Credentials(credentials, warn));
  const isPersistent = settings.persistence === 'always';
  const scripts =
    longestLeaseMs === undefined ? runner : new RestartQuarantine(runner, { longestLeaseMs, isPersistent, warn });
  return isCluster(model)
    ? new ClusterConnection(model, instanceId, leaseMs, scripts, clients, durability)
    : new PrimaryConnection(model, instanceId, leaseMs, scripts, clients, durability);
}
