import type { Redis } from 'ioredis';
import type { RedisLockModuleOptions } from 'nestjs-redis-lock';

/** The module options for the server and its promises. Sent to the workers as JSON. */
export type ServerOptions = RedisLockModuleOptions;

/** A Redis, or several, that the workers of a world lock by. */
export interface ChaosServer {
  /** The ports that a network is put in front of, for each worker; none where the workers find Redis by themselves. */
  readonly ports: readonly number[];
  /** The options to connect directly, or through the networks at these ports, as the user with the least rights. */
  optionsAt(ports?: readonly number[]): ServerOptions;
  /** Clients with all rights, that survive faults: one of each server on which something may be left. */
  readonly admins: readonly Redis[];
}
