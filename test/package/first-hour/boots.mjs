// The messages of an application at boot when something is wrong.
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { runProgram, succeed } from '../program.mjs';

const BOOT_EACH = fileURLToPath(new URL('boot-each.mjs', import.meta.url));

const BOOT = `import { NestFactory } from '@nestjs/core';

export function boot(module: object): Promise<void> {
  const booted = start(module);
  Object.assign(globalThis, { booted });
  return booted;
}

async function start(module: object): Promise<void> {
  const app = await NestFactory.create(module as never);
  await app.init();
  console.log('booted');
  await app.close();
}
`;

const IMPORTS = `import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { DistributedLock, LockHandler, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
import { boot } from './boot.js';

const shown = [Controller, Cron, Get, ScheduleModule, DistributedLock, LockHandler, RedisLockService, SingletonCron];
void shown;
const inMemory = RedisLockModule.forRoot({ connection: 'memory:' });
void inMemory;
`;

const module = (imports, providers, controllers = '') =>
  `@Module({ imports: [${imports}], providers: [${providers}], controllers: [${controllers}] })\nclass Shop {}\nvoid boot(Shop);\n`;

const job = (className) =>
  `@Injectable()\nclass ${className} {\n  @SingletonCron('0 1 * * *', { name: 'report' })\n  async run(): Promise<void> {}\n}\n`;

const cronUnder = (lock) =>
  `@Injectable()\nclass Reports {\n  @Cron('0 1 * * *')\n  @DistributedLock(${lock})\n  async run(): Promise<void> {}\n}\n`;

const INJECTED = '@Injectable()\nclass Orders {\n  constructor(readonly locks: RedisLockService) {}\n}\n';
const DECORATED = "@Injectable()\nclass Orders {\n  @DistributedLock('order')\n  async pay(): Promise<void> {}\n}\n";
const LOCKED_PROVIDER = "@Injectable()\nclass Orders {\n  @LockHandler('order')\n  async pay(): Promise<void> {}\n}\n";
const LEASE_LEFT =
  '@Injectable()\nclass Orders {\n  constructor(readonly locks: RedisLockService) {}\n' +
  "  async onApplicationBootstrap(): Promise<void> {\n    await this.locks.acquire('never');\n  }\n}\n";
const WORK_FIRST =
  '@Injectable()\nclass Orders {\n  constructor(readonly locks: RedisLockService) {}\n' +
  '  onModuleInit(): unknown {\n    const { locks }: { locks: any } = this;\n' +
  "    return locks.using('order', async () => {}, { waitMs: 0 });\n  }\n}\n";

/** `starts` is whether the application starts all the same. `alone`: in a process of its own, which ends by itself or is ended by Nest. */
const BOOTS = [
  {
    name: 'no-module',
    text: DECORATED + module('', 'Orders'),
    alone: true,
    says: /RedisLockService: import RedisLockModule\.forRoot\(\{ \.\.\. \}\) in your root module/,
  },
  {
    name: 'no-module-for-injection',
    text: INJECTED + module('', 'Orders'),
    says: /can't resolve dependencies of the Orders \(\?\)[^]*RedisLockService at index \[0\]/,
  },
  {
    name: 'registered-twice',
    text: module("inMemory, RedisLockModule.forRoot({ connection: 'memory:' })", ''),
    says: /RedisLockModule is registered 2 times as "default" in one application: at .*registered-twice/,
  },
  {
    name: 'option-out-of-range',
    text: module("RedisLockModule.forRoot({ connection: 'memory:', waitMs: -1 })", ''),
    says: /InvalidLockOptionsError: waitMs must be/,
  },
  {
    name: 'a-template-in-plain-quotes',
    text: "class Orders {\n  @DistributedLock('order:${id}')\n  async pay(): Promise<void> {}\n}\nvoid Orders;\n",
    says: /InvalidLockOptionsError: .*order:\$\{id\}.*backticks/,
  },
  {
    name: 'work-before-options',
    text: WORK_FIRST + module('inMemory', 'Orders'),
    says: /InvalidLockOptionsError: using takes the work last, after the options/,
  },
  {
    name: 'two-jobs-of-one-name',
    text: job('Reports') + job('Bills') + module('ScheduleModule.forRoot(), inMemory', 'Reports, Bills'),
    // The scheduler refuses it too; which of them comes first depends on its version.
    says: /Two singleton jobs are called "report"|given name \(report\) already exists/,
  },
  {
    name: 'no-schedule-module',
    text: job('Reports') + module('inMemory', 'Reports'),
    says: /WARN.*ScheduleModule is not imported, so .*"report".* never be scheduled\..*Import ScheduleModule\.forRoot\(\)/,
    starts: true,
  },
  {
    name: 'a-cron-under-a-lock',
    text: cronUnder("'report'") + module('ScheduleModule.forRoot(), inMemory', 'Reports'),
    says: /WARN.*Reports\.run has @Cron and @DistributedLock: every instance runs each tick.*use @SingletonCron/,
    starts: true,
  },
  {
    name: 'a-cron-that-skips-and-holds',
    text:
      cronUnder("{ key: 'report', onBusy: 'skip', minHoldMs: 10_000 }") +
      module('ScheduleModule.forRoot(), inMemory', 'Reports'),
    says: /RedisLockModule dependencies initialized(?![^]*(?:WARN|ERROR))/,
    starts: true,
  },
  {
    name: 'lock-handler-on-a-provider',
    text: LOCKED_PROVIDER + module('inMemory', 'Orders'),
    says: /Orders\.pay has @LockHandler, which would never run: .*use @DistributedLock/,
  },
  {
    name: 'memory-in-production',
    text: module('inMemory', ''),
    env: { NODE_ENV: 'production' },
    says: /NODE_ENV is production\. Set connection/,
    starts: true,
  },
  {
    name: 'redis-is-down',
    text: INJECTED + module("RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })", 'Orders'),
    says: /WARN.*The application starts, but.*ECONNREFUSED 127\.0\.0\.1:1/,
    starts: true,
  },
  {
    name: 'documented-rights',
    text: module("RedisLockModule.forRoot({ connection: process.env.WITH_RIGHTS!, keyPrefix: 'lock' })", ''),
    says: /RedisLockModule dependencies initialized(?![^]*(?:WARN|ERROR))/,
    starts: true,
  },
  {
    name: 'a-right-is-missing',
    text: module("RedisLockModule.forRoot({ connection: process.env.WITHOUT_ZADD!, keyPrefix: 'lock' })", ''),
    says: /ERROR.*lacks permissions that locks need: \+zadd\. .*See docs\/operations\/acl\.md/,
    starts: true,
  },
  {
    name: 'closed-with-a-lease',
    text:
      LEASE_LEFT +
      module(
        'RedisLockModule.forRoot({ connection: process.env.REDIS_URL!, keyPrefix: process.env.KEY_PREFIX!, shutdown: { drainMs: 300 } })',
        'Orders',
      ),
    says: /Closing: waiting up to 300 ms \(shutdown\.drainMs\) for .*"never".*\n[^]*"never"/,
    starts: true,
  },
];

export async function writeBoots({ folder }, asWritten) {
  await mkdir(join(folder, 'src/boots'));
  const files = [['boot', BOOT], ...BOOTS.map(({ name, text }) => [name, IMPORTS + text])];
  await Promise.all(files.map(([name, text]) => writeFile(join(folder, `src/boots/${name}.ts`), asWritten(text))));
}

/** They have been compiled with the application. @returns {Promise<string>} all that they have printed */
export async function checkBoots({ name: prefix, folder, env }) {
  const users = await makeUsers(prefix, folder, env.REDIS_URL);
  const options = { cwd: folder, env: { ...env, ...users, NO_COLOR: '1' } };
  const together = BOOTS.filter(({ alone }) => !alone);
  const results = await Promise.all([
    ...BOOTS.filter(({ alone }) => alone).map((boot) => bootAlone(boot, options)),
    bootEach(
      together.filter(({ starts }) => starts),
      options,
    ),
    bootEach(
      together.filter(({ starts }) => !starts),
      options,
    ),
  ]);
  const said = new Map(results.flat().map(({ name, ...result }) => [name, result]));
  const failures = BOOTS.flatMap(({ name, says, starts = false }) => {
    const { code, output } = said.get(name);
    const isRight = says.test(output) && (code === 0) === starts && /^booted$/m.test(output) === starts;
    return isRight ? [] : [`${name}: exit code ${code}, expected ${says}\n${output}`];
  });
  assert.equal(failures.length, 0, failures.join('\n\n'));
  return [...said.values()].map(({ output }) => output).join('\n');
}

async function bootAlone({ name, env }, options) {
  const program = [`dist/boots/${name}.js`];
  const result = await runProgram(process.execPath, program, { ...options, env: { ...options.env, ...env } });
  return { name, ...result };
}

/**
 * Runs them in one process, which takes most of its time to load Nest. Those that start leave nothing behind: it exits
 * by itself.
 */
async function bootEach(boots, options) {
  const list = JSON.stringify(boots.map(({ name, env }) => ({ name, env })));
  const output = await succeed(process.execPath, [BOOT_EACH, join(options.cwd, 'dist/boots'), list], options);
  return JSON.parse(output);
}

/** Makes a user as the page on the ACL says, and one that lacks a right. @returns {Promise<object>} their URLs */
async function makeUsers(prefix, folder, redisUrl) {
  const page = await readFile(join(folder, 'node_modules/nestjs-redis-lock/docs/operations/acl.md'), 'utf8');
  const [, documented] = /^user locks (on >secret .*)$/m.exec(page);
  const rights = documented.split(' ');
  const users = { WITH_RIGHTS: rights, WITHOUT_ZADD: rights.filter((right) => right !== '+zadd') };
  const redis = new Redis(redisUrl);
  const { host } = new URL(redisUrl);
  const urls = Object.entries(users).map(async ([user, given]) => {
    // +info: asked by ioredis, to learn whether Redis is loading its data.
    await redis.call('ACL', 'SETUSER', `${prefix}-${user}`, ...given, '+info');
    return [user, `redis://${prefix}-${user}:secret@${host}`];
  });
  return Promise.all(urls)
    .then(Object.fromEntries)
    .finally(() => redis.disconnect());
}
