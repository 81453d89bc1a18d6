import { Logger, type OnModuleInit } from '@nestjs/common';
import { type DiscoveryService, MetadataScanner } from '@nestjs/core';
import 'reflect-metadata';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { quote } from '../../core/util/quoted.js';
import { DEFAULT_NAME } from '../tokens.js';

/** The metadata key of a singleton job, on the method. */
export const SINGLETON_JOB = 'nestjs-redis-lock:singleton-job';

/** A method that is a singleton job. */
export interface SingletonJob {
  /** The name of the job, if it has one. */
  readonly name: string | undefined;
  readonly method: string;
  readonly lockService: string | undefined;
}

/** Returns the name of the job in the fleet: its own, or class and method. */
export function jobName({ name, method }: SingletonJob, instance: object): string {
  return name ?? `${instance.constructor.name}.${method}`;
}

/**
 * Refuses to start the application if two jobs have the same name: they would claim each other's ticks, so each tick
 * would run only one of them. Warns of jobs without a name if another application could have jobs with the same class
 * and method on the same keys. One explorer for each lock service.
 */
export class SingletonJobExplorer implements OnModuleInit {
  readonly #logger = new Logger('RedisLockModule');
  readonly #scanner = new MetadataScanner();
  readonly #discovery: DiscoveryService;
  readonly #lockService: string;
  readonly #areKeysShared: boolean;

  /** @param areKeysShared whether another application could use the same keys by accident */
  constructor(discovery: DiscoveryService, lockService: string, areKeysShared: boolean) {
    this.#discovery = discovery;
    this.#lockService = lockService;
    this.#areKeysShared = areKeysShared;
  }

  onModuleInit(): void {
    const methodsByJob = new Map<string, unknown>();
    const unnamed = new Set<string>();
    for (const { instance } of [...this.#discovery.getProviders(), ...this.#discovery.getControllers()]) {
      if (instance === null || typeof instance !== 'object' || !Object.getPrototypeOf(instance)) continue;
      for (const key of this.#scanner.getAllMethodNames(Object.getPrototypeOf(instance))) {
        this.#check(instance, key, methodsByJob, unnamed);
      }
    }
    if (unnamed.size > 0 && this.#areKeysShared) this.#warn([...unnamed]);
  }

  #warn(jobs: readonly string[]): void {
    const shown = jobs.slice(0, 5).join(', ') + (jobs.length > 5 ? `, and ${jobs.length - 5} more` : '');
    this.#logger.warn(
      `${jobs.length === 1 ? 'A singleton job has' : 'Singleton jobs have'} no name: ${shown}. ` +
        `Another application on this Redis with the same class and method names would take their ticks. ` +
        `Give each job a name, or this application a keyPrefix of its own.`,
    );
  }

  #check(instance: object, key: string, methodsByJob: Map<string, unknown>, unnamed: Set<string>): void {
    const method = (instance as Record<string, unknown>)[key];
    if (typeof method !== 'function') return;
    const job = Reflect.getMetadata(SINGLETON_JOB, method) as SingletonJob | undefined;
    if (!job || (job.lockService ?? DEFAULT_NAME) !== this.#lockService) return;
    const name = jobName(job, instance);
    if (job.name === undefined) unnamed.add(name);
    if (methodsByJob.has(name) && methodsByJob.get(name) !== method) {
      throw new InvalidLockOptionsError(
        `Two singleton jobs are called ${quote(name)}. The second one is ${instance.constructor.name}.${key}. ` +
          `They would take each other's ticks. Give one of them another name.`,
        'name',
      );
    }
    methodsByJob.set(name, method);
  }
}
