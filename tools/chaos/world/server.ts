import type { Redis } from 'ioredis';
import type { RedisLockModuleOptions } from 'nestjs-redis-lock';

/** The options of the lock module that say where Redis is, and what it has to promise. They go to the workers as JSON. */
export type ServerOptions = RedisLockModuleOptions;

/** A Redis, or several, that the workers of a world lock by. */
export interface ChaosServer {
  /** The ports that a network is put in front of, for each worker; none where the workers find Redis by themselves. */
  readonly ports: readonly number[];
  /** How to lock by it: directly, or through the networks at these ports. As the user that has no more rights than it needs. */
  optionsAt(ports?: readonly number[]): ServerOptions;
  /** Clients with all rights, that survive faults: one of each server on which something may be left. */
  readonly admins: readonly Redis[];
}
