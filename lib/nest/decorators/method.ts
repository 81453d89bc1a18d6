import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject } from '@nestjs/common';
import 'reflect-metadata';
import { InvalidLockOptionsError, LockModuleMissingError } from '../../kernel/api/errors.js';
import { describeValue } from '../../kernel/api/validation.js';
import { sharedByCopies } from '../../kernel/util/objects.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { DEFAULT_NAME, getRedisLockToken } from '../service-parts.js';
import type { LockPlan } from './lock-plan.js';

/**
 * Replaces a method by a wrapper with the same name, length and metadata, so that `@Cron`, `@Get`, `@UseGuards` and
 * other decorators work above and below this one.
 *
 * @param keepsGenerators whether the code of a generator runs while the wrapper holds the lock
 * @throws InvalidLockOptionsError for a property that is not a method, and for a generator
 */
export function wrapMethod(
  descriptor: PropertyDescriptor | undefined,
  where: string,
  wrap: (original: (...args: unknown[]) => unknown) => (this: object, ...args: unknown[]) => unknown,
  keepsGenerators = false,
): void {
  const original = descriptor?.value as unknown;
  // A property has no descriptor, even if its value is an arrow function.
  if (!descriptor || typeof original !== 'function') {
    const what = descriptor
      ? `${where} is not a method, but ${describeValue(original)}. Put the decorator on a method.`
      : `${where} is a property, and this decorator only works on methods. Write a method instead: async ${where.slice(where.lastIndexOf('.') + 1)}() { ... }.`;
    throw new InvalidLockOptionsError(what, 'decorator');
  }
  if (!keepsGenerators && Object.prototype.toString.call(original).endsWith('GeneratorFunction]')) {
    throw new InvalidLockOptionsError(
      `${where} is a generator, whose code runs as it is consumed, after the lock is released. ` +
        'Lock inside the generator, with using(), or return all values at once. ' +
        'A handler whose values Nest sends needs @LockHandler.',
      'decorator',
    );
  }
  const wrapped = wrap(original as (...args: unknown[]) => unknown);
  copyMetadata(original, wrapped);
  Object.defineProperty(wrapped, 'name', { value: original.name, configurable: true });
  Object.defineProperty(wrapped, 'length', { value: original.length, configurable: true });
  descriptor.value = wrapped;
}

/** Copies the metadata of a method to its replacement, which keeps its own. */
export function copyMetadata(original: object, replacement: object): void {
  for (const key of Reflect.getOwnMetadataKeys(original)) {
    if (Reflect.hasOwnMetadata(key, replacement)) continue;
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), replacement);
  }
}

/** The metadata key of the decorator on a method that may return without running it. */
const SKIPPING = 'nestjs-redis-lock:skipping';

/** @param decorator for messages, such as `@LeaderOnly` */
export function markAsSkipping(method: object, decorator: string): void {
  Reflect.defineMetadata(SKIPPING, decorator, method);
}

/** Returns the decorator of this package that may return without running the method; decorators above copy the mark. */
export function skippingDecoratorOf(method: object): string | undefined {
  return Reflect.getMetadata(SKIPPING, method) as string | undefined;
}

/**
 * Returns `Class.method`, for messages.
 *
 * @throws InvalidLockOptionsError if a class is decorated instead of a method, or if the compiler emits the decorators
 *   of ECMAScript: they pass an object in place of the name of the method
 */
export function describeMethod(target: object, propertyKey: string | symbol): string {
  if (typeof propertyKey === 'object') {
    const { kind, name } = propertyKey as ClassMemberDecoratorContext;
    throw new InvalidLockOptionsError(
      `The ${kind} ${String(name)} has an ECMAScript decorator, but Nest and this package need TypeScript's ` +
        'legacy decorators: set "experimentalDecorators": true and "emitDecoratorMetadata": true in tsconfig.json. For ' +
        'swc, set legacyDecorator and decoratorMetadata.',
      'decorator',
    );
  }
  if (propertyKey === undefined) {
    throw new InvalidLockOptionsError(
      `${(target as { name: string }).name} is a class, but this decorator is for methods. Put one on each method.`,
      'decorator',
    );
  }
  return `${target.constructor.name}.${String(propertyKey)}`;
}

/**
 * Declares the lock service as an injected property of a class. Nest then sets the right service on each instance: in
 * any scope, in subclasses, and with several applications in one process. Without the module, the application does not
 * start.
 *
 * @returns a function that finds the service of an instance; it throws LockModuleMissingError if there is none
 */
export function declareLockService(
  prototype: object,
  name: string = DEFAULT_NAME,
): (instance: object | undefined, where: string) => RedisLockService {
  if (typeof prototype === 'function') {
    throw new InvalidLockOptionsError(
      `A static method of ${prototype.name} cannot be locked: Nest injects the lock service into instances. ` +
        `Make it an instance method.`,
      'decorator',
    );
  }
  const property = Symbol.for(describeProperty(name));
  const declared = declaredLockServices(prototype);
  if (!declared.has(name)) {
    Inject(getRedisLockToken(name))(prototype, property);
    Reflect.defineMetadata(LOCK_SERVICES, new Map([...declared, [name, property]]), prototype);
  }
  return (instance, where) => {
    const service = (instance as { [property]?: RedisLockService } | undefined)?.[property];
    if (service) return service;
    throw new LockModuleMissingError(
      (instance === undefined
        ? `${where} was called without its object: call it as a method, or bind it. `
        : `${where} was called on an object that has no lock service. `) +
        `Nest injects the lock service after the constructor has run. Let Nest create the object, as a provider or ` +
        `controller of a module, not with new or in a useFactory, and call the method later. In a test, use ` +
        `Test.createTestingModule with RedisLockModule.forRoot({ connection: 'memory:' }). To test an object created with ` +
        `new, call bindLocks(object, passThroughLocks()) of nestjs-redis-lock/testing.`,
      '',
    );
  };
}

/**
 * The metadata key of a prototype for the lock services of its decorated methods. Each copy of this package finds it.
 */
const LOCK_SERVICES = 'nestjs-redis-lock:lock-services';

/**
 * Returns the lock services of the decorated methods of a class, inherited ones included: by name, the property in
 * which an instance has it.
 */
export function declaredLockServices(prototype: object): ReadonlyMap<string, symbol> {
  return (Reflect.getMetadata(LOCK_SERVICES, prototype) as ReadonlyMap<string, symbol> | undefined) ?? new Map();
}

/** The name of the property. Nest shows it when it cannot inject the service. */
function describeProperty(name: string): string {
  if (name === DEFAULT_NAME) return 'RedisLockService: import RedisLockModule.forRoot({ ... }) in your root module';
  const quoted = JSON.stringify(name);
  return `RedisLockService ${quoted}: import RedisLockModule.forRoot({ service: ${quoted}, ... }) in your root module`;
}

/** Refuses a second argument, which JavaScript would drop. */
export function checkIsOnlyArgument(decorator: string, given: readonly unknown[]): void {
  if (given.length <= 1) return;
  throw new InvalidLockOptionsError(
    `@${decorator} takes one argument, not ${given.length}. Write the key into the options: @${decorator}({ key: ..., ... }).`,
    'decorator',
  );
}

/** A method that a decorator runs under a lock. */
export interface LockedMethod extends Pick<
  LockPlan<never>,
  'lockService' | 'group' | 'mode' | 'onBusy' | 'minHoldMs' | 'fixed'
> {
  readonly name: string | symbol;
  /** `Class.method`, for messages. */
  readonly where: string;
  /** The name, such as `@DistributedLock`. */
  readonly decorator: string;
  /** The wrapper that the decorator has put in place of the method. */
  readonly wrapped: (...args: never[]) => unknown;
}

/** The metadata key of a prototype for its own methods that run under a lock. */
const LOCKED_METHODS = 'nestjs-redis-lock:methods';

export function addLockedMethod(prototype: object, method: LockedMethod): void {
  Reflect.defineMetadata(LOCKED_METHODS, [...lockedMethodsOf(prototype), method], prototype);
}

/** Returns the locked methods that the class declares itself. */
export function lockedMethodsOf(prototype: object): readonly LockedMethod[] {
  return (Reflect.getOwnMetadata(LOCKED_METHODS, prototype) as LockedMethod[] | undefined) ?? [];
}

/** A decorated method that is a job. Each decorated method has another object. */
interface MethodOfJob {
  /** The prototype that has the method, and its name there. */
  readonly target: object;
  readonly method: string;
  /** The class and the method, for messages. */
  readonly where: string;
  /** The name of the decorator, for messages. */
  readonly decorator: string;
}

/** A decorated method that runs as a job now. */
interface RunningMethod {
  readonly self: object;
  readonly job: MethodOfJob;
  /** What the method is called with. */
  readonly run: object;
  isOver: boolean;
  /** The decorator below the job that has returned without the method. */
  skippedBy?: string | undefined;
}

/** One copy of this package may have decorated the base class, and another one the subclass. */
const runningMethods = sharedByCopies('running-methods:1', () => new AsyncLocalStorage<RunningMethod>());

/**
 * Runs the method of a job. {@link overridingRun} finds it until it ends.
 *
 * @throws InvalidLockOptionsError when a decorator below has returned without the method: the tick has not run
 */
export async function runMethod(self: object, job: MethodOfJob, run: object, method: () => unknown): Promise<unknown> {
  const running: RunningMethod = { self, job, run, isOver: false };
  try {
    const result = await runningMethods.run(running, method);
    if (running.skippedBy === undefined) return result;
    throw new InvalidLockOptionsError(
      `${job.where} did not run for this tick: ${running.skippedBy}, which is below @${job.decorator}, returned without ` +
        `calling the method. Move it above @${job.decorator} and the decorators between the two: then it skips a call ` +
        'before the call claims the tick.',
      'decorator',
    );
  } finally {
    running.isOver = true;
  }
}

/**
 * Returns the run of a subclass's job that calls the overridden method by `super`. That method is a job too, and would
 * claim a tick that the subclass has already.
 */
export function overridingRun(self: object, job: MethodOfJob): object | undefined {
  const running = runningMethods.getStore();
  if (!running || running.isOver || running.self !== self) return undefined;
  return running.job !== job && running.job.method === job.method ? running.run : undefined;
}

/**
 * Called by a decorator that may return without its method. If it is on the method of a job that runs now, the run
 * learns whether the method was called. A decorator in between may try again.
 *
 * @param decorator its name, for messages
 * @returns a function to call before the method
 */
export function mayBeSkipped(self: object, target: object, name: string | symbol, decorator: string): () => void {
  const running = runningMethods.getStore();
  const isOfJob = running?.self === self && running.job.target === target && running.job.method === name;
  if (!isOfJob || running.isOver) return () => {};
  running.skippedBy = decorator;
  return () => (running.skippedBy = undefined);
}
