import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import 'reflect-metadata';
import { InvalidLockOptionsError } from '../core/errors.js';
import { quote } from '../core/quoted.js';

/** Marks a method as a singleton job. */
export const SINGLETON_JOB = 'nestjs-redis-lock:singleton-job';

/** What the mark says. */
export interface SingletonJob {
  /** The job's name, if it was given one. */
  readonly name: string | undefined;
  readonly method: string;
  readonly lockService: string | undefined;
}

/** The name by which the fleet knows the job: its own, or class and method. */
export function jobName({ name, method }: SingletonJob, instance: object): string {
  return name ?? `${instance.constructor.name}.${method}`;
}

/** Refuses to boot with two jobs of one name: they would claim each other's ticks, and one of them would never run. */
@Injectable()
export class SingletonJobExplorer implements OnModuleInit {
  readonly #discovery: DiscoveryService;
  readonly #scanner: MetadataScanner;

  constructor(discovery: DiscoveryService, scanner: MetadataScanner) {
    this.#discovery = discovery;
    this.#scanner = scanner;
  }

  onModuleInit(): void {
    const methodsByJob = new Map<string, unknown>();
    for (const { instance } of [...this.#discovery.getProviders(), ...this.#discovery.getControllers()]) {
      if (instance === null || typeof instance !== 'object' || !Object.getPrototypeOf(instance)) continue;
      for (const key of this.#scanner.getAllMethodNames(Object.getPrototypeOf(instance))) {
        this.#check(instance, key, methodsByJob);
      }
    }
  }

  #check(instance: object, key: string, methodsByJob: Map<string, unknown>): void {
    const method = (instance as Record<string, unknown>)[key];
    if (typeof method !== 'function') return;
    const job = Reflect.getMetadata(SINGLETON_JOB, method) as SingletonJob | undefined;
    if (!job) return;
    const name = jobName(job, instance);
    const id = `${job.lockService ?? ''}/${name}`;
    if (methodsByJob.has(id) && methodsByJob.get(id) !== method) {
      throw new InvalidLockOptionsError(
        `Two singleton jobs are called ${quote(name)}, the second one is ${instance.constructor.name}.${key}. ` +
          `They would take each other's ticks: give one of them another name.`,
        'name',
      );
    }
    methodsByJob.set(id, method);
  }
}
