// Which files of lib/ one call of a method with @DistributedLock runs through, and one tick of a @SingletonCron, by V8's coverage.
// Needs dist/ and a Redis (REDIS_URL).
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';

const modules = new URL('../../dist/modules/', import.meta.url).href;

/**
 * Lists the files that ran for one call: a free lock, acquired and released.
 *
 * @param {string} connection the URL of a Redis
 * @returns {Promise<{ call: string[], definition: string[], tick: string[] }>} files of lib/, without `.ts`, sorted:
 *   for a call, for the definition of the class, and for a tick that this instance gets
 */
export async function walk(connection) {
  await import('reflect-metadata');
  const { DistributedLock, RedisLockModule } = await import(`${modules}index.js`);
  const { SingletonCron } = await import(`${modules}schedule.js`);
  const { Module } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const { ScheduleModule } = await import('@nestjs/schedule');
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const taken = async () => filesOf(await session.post('Profiler.takePreciseCoverage'));

  await taken();
  class Shop {
    async sell() {}
  }
  const sell = Object.getOwnPropertyDescriptor(Shop.prototype, 'sell');
  Object.defineProperty(Shop.prototype, 'sell', DistributedLock('stock')(Shop.prototype, 'sell', sell) ?? sell);
  const definition = await taken();
  let ended = () => {};
  class Jobs {
    async report() {
      ended();
    }
  }
  const report = Object.getOwnPropertyDescriptor(Jobs.prototype, 'report');
  SingletonCron('* * * * * *', { name: 'report' })(Jobs.prototype, 'report', report);
  Object.defineProperty(Jobs.prototype, 'report', report);
  class App {}
  Module({ imports: [RedisLockModule.forRoot({ connection })], providers: [Shop] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const shop = app.get(Shop);
  // The first calls load the scripts and open what is opened once.
  for (let i = 0; i < 3; i++) await shop.sell();
  await taken();
  await shop.sell();
  const call = await taken();
  await app.close();

  class Scheduled {}
  const imports = [ScheduleModule.forRoot(), RedisLockModule.forRoot({ connection })];
  Module({ imports, providers: [Jobs] })(Scheduled);
  const scheduled = await NestFactory.createApplicationContext(Scheduled, { logger: false });
  const nextTick = async () => {
    await new Promise((resolve) => (ended = resolve));
    // Its lock is released by then, and the next one is not due yet.
    await new Promise((resolve) => setTimeout(resolve, 200));
  };
  for (let i = 0; i < 2; i++) await nextTick();
  await taken();
  await nextTick();
  const tick = await taken();
  await scheduled.close();
  session.disconnect();
  return { definition, call, tick };
}

/** Code that looks at a connection from time to time, on a busy machine also while a call runs. */
const BY_TIMERS = new Set(['redis/connection/ioredis-quirks']);

/** @param {{ result: { url: string, functions: { isBlockCoverage: boolean, ranges: { count: number }[] }[] }[] }} coverage */
function filesOf({ result }) {
  const ran = result.filter(
    ({ url, functions }) => url.startsWith(modules) && functions.some(({ ranges }) => ranges[0].count > 0),
  );
  const files = ran.map(({ url }) => url.slice(modules.length).replace(/\.js$/, ''));
  return files.filter((file) => !BY_TIMERS.has(file)).sort();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const walked = await walk(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
  console.log(JSON.stringify(walked, null, 2));
}
