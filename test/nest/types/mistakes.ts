/** The lines before each mistake. */
export const IMPORTS = `
import { of } from 'rxjs';
import { DistributedLock, DistributedSemaphore, LeaderOnly, LockHandler, Once, ReadLock, RedisLockModule, type RedisLockService, WriteLock } from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, SingletonTimeout } from 'nestjs-redis-lock/schedule';
declare const locks: RedisLockService;
declare const config: { url: string };
`;

/** A method of a class, with its decorator. */
export const method = (text: string): string => `export class Shop {\n${text}\n}`;

/**
 * Mistakes of users, the word that the compiler points to, and the first line of its error. If a property is missing,
 * TypeScript names it in the second line, so that line too.
 */
export const MISTAKES: readonly (readonly [mistake: string, text: string, at: string, answer: string])[] = [
  [
    'forRoot with a host beside the other options',
    `RedisLockModule.forRoot({ host: 'redis', port: 6379 });`,
    'host',
    "Object literal may only specify known properties, and 'host' does not exist in type 'WithConnectionOrQuorum'.",
  ],
  [
    'forRoot with a URL beside the other options',
    `RedisLockModule.forRoot({ url: 'redis://redis' });`,
    'url',
    "Object literal may only specify known properties, and 'url' does not exist in type 'WithConnectionOrQuorum'.",
  ],
  [
    'forRoot with a client beside the other options',
    `RedisLockModule.forRoot({ client: config });`,
    'client',
    "Object literal may only specify known properties, and 'client' does not exist in type 'WithConnectionOrQuorum'.",
  ],
  [
    'forRoot with the word of another library',
    `RedisLockModule.forRoot({ connection: 'memory:', ttl: 5_000 });`,
    'ttl',
    "Object literal may only specify known properties, and 'ttl' does not exist in type 'OptionsWithConnection & RedisLockModuleExtras'.",
  ],
  [
    'forRoot with a variable that may be missing',
    `RedisLockModule.forRoot({ connection: process.env['REDIS_URL'] });`,
    '',
    `Argument of type '{ connection: string | undefined; }' is not assignable to parameter of type 'WithConnectionOrQuorum'.
  Type '{ connection: string | undefined; }' is not assignable to type 'OptionsWithConnection & RedisLockModuleExtras'.`,
  ],
  [
    'a lock without a key',
    method(`@DistributedLock({ waitMs: 1_000 }) async pay() {}`),
    '',
    "Argument of type '{ waitMs: number; }' is not assignable to parameter of type 'KeyAlone<[]> | LockDecoratorOptions<[], (busy: LockBusyError) => never>'.",
  ],
  [
    'a key by the name of another library',
    method(`@DistributedLock({ keys: ['a', 'b'] }) async pay() {}`),
    '',
    "Argument of type '{ keys: string[]; }' is not assignable to parameter of type 'KeyAlone<[]> | LockDecoratorOptions<[], (busy: LockBusyError) => never>'.",
  ],
  [
    'a key and options',
    method(`@DistributedLock('a', { waitMs: 1_000 }) async pay() {}`),
    '',
    'Expected 1 arguments, but got 2.',
  ],
  [
    'a time in the place of options',
    `export const done = locks.using('a', 5_000, () => 1);`,
    '5_000',
    "Type '5000' has no properties in common with type 'LockOptions'.",
  ],
  [
    'a name behind the schedule of a job',
    method(`@SingletonCron('0 0 * * *', 'nightly') async run() {}`),
    '',
    "Argument of type '\"nightly\"' is not assignable to parameter of type 'SingletonCronOptions | undefined'.",
  ],
  [
    'a job decorator from the root',
    `import { SingletonCron as Cron } from 'nestjs-redis-lock'; export const cron = Cron;`,
    'SingletonCron',
    "'\"nestjs-redis-lock\"' has no exported member named 'SingletonCron'. Did you mean 'SingletonRun'?",
  ],
  [
    'an arrow function in a property',
    method(`@DistributedLock('a') pay = async () => {};`),
    '',
    'Unable to resolve signature of property decorator when called as an expression.',
  ],
  [
    'a service created with new',
    `import { RedisLockService as Service } from 'nestjs-redis-lock'; export const made = new Service('redis://redis');`,
    '',
    "Argument of type 'string' is not assignable to parameter of type 'ServiceParts'.",
  ],
  [
    'a misspelt option of @DistributedLock',
    method(`@DistributedLock({ key: 'x', leasMs: 1_000 }) async pay() {}`),
    'leasMs',
    "Object literal may only specify known properties, but 'leasMs' does not exist in type 'LockDecoratorOptions<[], (busy: LockBusyError) => never>'. Did you mean to write 'leaseMs'?",
  ],
  [
    'a misspelt option beside a key function',
    method(`@ReadLock({ key: (id: string) => id, waitMS: 1_000 }) async pay(id: string) {}`),
    'waitMS',
    "Object literal may only specify known properties, but 'waitMS' does not exist in type 'ReadWriteLockOptions<[id: string], (busy: LockBusyError, id: string) => never>'. Did you mean to write 'waitMs'?",
  ],
  [
    'a misspelt option of @LockHandler',
    method(`@LockHandler({ key: 'x', permits: 3, leasMs: 1_000 }) async pay() {}`),
    'leasMs',
    "Object literal may only specify known properties, but 'leasMs' does not exist in type 'SemaphoreHandlerOptions'. Did you mean to write 'leaseMs'?",
  ],
  [
    'a misspelt option of @SingletonCron',
    method(`@SingletonCron('* * * * *', { timezone: 'UTC' }) async run() {}`),
    'timezone',
    "Object literal may only specify known properties, but 'timezone' does not exist in type 'SingletonCronOptions'. Did you mean to write 'timeZone'?",
  ],
  [
    'a misspelt option of @SingletonInterval after its name',
    method(`@SingletonInterval('poll', 1_000, { overlp: 'wait' }) async run() {}`),
    'overlp',
    "Object literal may only specify known properties, but 'overlp' does not exist in type 'Omit<SingletonJobOptions, \"name\">'. Did you mean to write 'overlap'?",
  ],
  [
    'a misspelt option of forRoot',
    `RedisLockModule.forRoot({ connection: 'memory:', leasMs: 1_000 });`,
    'leasMs',
    "Object literal may only specify known properties, but 'leasMs' does not exist in type 'OptionsWithConnection & RedisLockModuleExtras'. Did you mean to write 'leaseMs'?",
  ],
  [
    'forRoot without options',
    `RedisLockModule.forRoot({});`,
    '',
    "Argument of type '{}' is not assignable to parameter of type 'WithConnectionOrQuorum'.",
  ],
  [
    'a connection and a quorum',
    `RedisLockModule.forRoot({ connection: 'memory:', quorum: { connections: ['redis://a'] } });`,
    '',
    "Argument of type '{ connection: string; quorum: { connections: string[]; }; }' is not assignable to parameter of type 'WithConnectionOrQuorum'.\n  Types of property 'quorum' are incompatible.",
  ],
  [
    'an unknown option from a factory',
    `RedisLockModule.forRootAsync({ useFactory: async () => ({ connection: config.url, leasMs: 1_000 }) });`,
    'useFactory',
    "Type '() => Promise<{ connection: string; leasMs: number; }>' is not assignable to type 'Mistake<\"The factory returns an option that the module does not know: leasMs\">'.",
  ],
  [
    'a key function with another parameter',
    method(`@DistributedLock((id: string) => id) async pay(id: number) {}`),
    'DistributedLock',
    "Decorator function return type 'Mistake<\"The key function must take the parameters of the method\">' is not assignable to type 'void | TypedPropertyDescriptor<(id: number) => Promise<void>>'.",
  ],
  [
    'an async key function',
    method(`@DistributedLock(async (id: string) => id) async pay(id: string) {}`),
    'async',
    "Argument of type '(id: string) => Promise<string>' is not assignable to parameter of type 'KeyAlone<[id: string]> | LockDecoratorOptions<[id: string], (busy: LockBusyError, id: string) => never>'.\n  Type '(id: string) => Promise<string>' is not assignable to type 'KeyFunction<[id: string]>'.\n    Type 'Promise<string>' is not assignable to type 'ResourceNames | Mistake<\"The key function must return the name itself, so it must not be async\">'.",
  ],
  [
    'an async key function in the options',
    method(`@DistributedSemaphore({ key: async (id: string) => id, permits: 3 }) async pay(id: string) {}`),
    'key',
    "Type '(id: string) => Promise<string>' is not assignable to type 'string | ((id: string) => string | Mistake<\"The key function must return the name itself, so it must not be async\">)'.",
  ],
  [
    'a call that is skipped, and a method that always returns a number',
    method(`@DistributedLock({ key: 'x', onBusy: 'skip' }) async count(): Promise<number> { return 1; }`),
    'DistributedLock',
    "Decorator function return type 'Mistake<\"A call that does not run the method returns undefined: add undefined to the return type\">' is not assignable to type 'void | TypedPropertyDescriptor<() => Promise<number>>'.",
  ],
  [
    'a fallback of another type',
    method(
      `@DistributedSemaphore({ key: 'x', permits: 3, onBusy: () => 42 }) async name(): Promise<string> { return ''; }`,
    ),
    'DistributedSemaphore',
    "Decorator function return type 'Mistake<\"onBusy or parse returns a different type than the method\">' is not assignable to type 'void | TypedPropertyDescriptor<() => Promise<string>>'.",
  ],
  [
    'a parse function that returns another type',
    method(
      `@Once({ key: 'x', resultTtlMs: 1, serialize: (n: number) => '', parse: () => 42 }) async name(): Promise<string> { return ''; }`,
    ),
    'Once',
    "Decorator function return type 'Mistake<\"onBusy or parse returns a different type than the method\">' is not assignable to type 'void | TypedPropertyDescriptor<() => Promise<string>>'.",
  ],
  [
    'a result that is kept of a method that is not async',
    method(`@Once({ key: 'x', resultTtlMs: 1 }) count() { return 1; }`),
    'Once',
    "Decorator function return type 'Mistake<\"The method must be async\">' is not assignable to type 'void | TypedPropertyDescriptor<() => number>'.",
  ],
  [
    'a key function of a result with another parameter',
    method(`@Once({ key: (id: number) => \`report:\${id}\`, resultTtlMs: 1 }) async report(id: string) { return id; }`),
    'Once',
    "Decorator function return type 'Mistake<\"The key function must take the parameters of the method\">' is not assignable to type 'void | TypedPropertyDescriptor<(id: string) => Promise<string>>'.",
  ],
  [
    'a result without a TTL',
    method(`@Once({ key: 'x' }) async report() { return 1; }`),
    '',
    "Argument of type '{ key: string; }' is not assignable to parameter of type 'OnceDecoratorOptions<[], never>'.\n  Property 'resultTtlMs' is missing in type '{ key: string; }' but required in type 'OnceDecoratorOptions<[], never>'.",
  ],
  [
    'a fallback with another parameter',
    method(`@DistributedLock({ key: 'x', onBusy: (busy, id: number) => id }) async pay(id: string) { return 1; }`),
    'DistributedLock',
    "Decorator function return type 'Mistake<\"After the error, onBusy must take the parameters of the method\">' is not assignable to type 'void | TypedPropertyDescriptor<(id: string) => Promise<number>>'.",
  ],
  [
    'a method that is not async',
    method(`@WriteLock('x') count() { return 1; }`),
    'WriteLock',
    "Decorator function return type 'Mistake<\"The method must be async\">' is not assignable to type 'void | TypedPropertyDescriptor<() => number>'.",
  ],
  [
    'an async generator',
    method(`@DistributedLock('x') async *rows() { yield 1; }`),
    'DistributedLock',
    "Decorator function return type 'Mistake<\"The code of a generator runs after the lock is released: lock inside the generator\">' is not assignable to type 'void | TypedPropertyDescriptor<() => AsyncGenerator<number, void, unknown>>'.",
  ],
  [
    'a method that resolves to an async generator',
    method(
      `async *rows() { yield 1; }\n@DistributedSemaphore({ key: 'x', permits: 3 }) async all() { return this.rows(); }`,
    ),
    'DistributedSemaphore',
    "Decorator function return type 'Mistake<\"The code of a generator runs after the lock is released: lock inside the generator\">' is not assignable to type 'void | TypedPropertyDescriptor<() => Promise<AsyncGenerator<number, void, unknown>>>'.",
  ],
  [
    'a method that resolves to an Observable, such as what HttpService returns',
    method(`@DistributedLock('x') async pay() { return of(1); }`),
    'DistributedLock',
    "Decorator function return type 'Mistake<\"An Observable runs after the lock is released: return await lastValueFrom(observable)\">' is not assignable to type 'void | TypedPropertyDescriptor<() => Promise<Observable<number>>>'.",
  ],
  [
    'a job that returns undefined on the other instances',
    method(`@SingletonCron('* * * * *') async count(): Promise<number> { return 1; }`),
    'SingletonCron',
    "Decorator function return type 'Mistake<\"A call that does not run the method returns undefined: add undefined to the return type\">' is not assignable to type 'void | TypedPropertyDescriptor<() => Promise<number>>'.",
  ],
  [
    'options after the work',
    `void locks.using('x', async () => {}, { waitMs: 0 });`,
    'async',
    "Type '() => Promise<void>' has no properties in common with type 'LockOptions'.",
  ],
  [
    'a time with its unit',
    method(`@DistributedLock({ key: 'x', waitMs: '5s' }) async pay() {}`),
    'waitMs',
    "Type 'string' is not assignable to type 'number'.",
  ],
  [
    'a semaphore without permits',
    method(`@DistributedSemaphore({ key: 'x' }) async pay() {}`),
    '',
    "Argument of type '{ key: string; }' is not assignable to parameter of type 'SemaphoreDecoratorOptions<[], (busy: LockBusyError) => never>'.\n  Property 'permits' is missing in type '{ key: string; }' but required in type 'SemaphoreDecoratorOptions<[], (busy: LockBusyError) => never>'.",
  ],
  [
    '@LeaderOnly without a name',
    method(`@LeaderOnly({ leaseMs: 5_000 }) async run() {}`),
    '',
    "Argument of type '{ leaseMs: number; }' is not assignable to parameter of type 'string | LeaderOnlyOptions'.\n  Property 'name' is missing in type '{ leaseMs: number; }' but required in type 'LeaderOnlyOptions'.",
  ],
];
