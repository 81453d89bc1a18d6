// The program of transactions.slow.test.ts: these packages are CommonJS and require Nest, which Jest cannot do with
// Nest 12.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { type INestApplicationContext, type LoggerService, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { DataSource } from 'typeorm';
import { initializeTransactionalContext, StorageDriver } from 'typeorm-transactional';
import { Database } from './database.js';
import { PrismaClient } from './generated/client.js';
import * as wrong from './wrong-orders.js';

const [redisUrl, databaseUrl] = process.argv.slice(2) as [string, string];
process.env['REDIS_URL'] = redisUrl;
process.env['DATABASE_URL'] = databaseUrl;
initializeTransactionalContext({ storageDriver: StorageDriver.AUTO });

interface Shop {
  sell(id: string): Promise<void>;
  sellAll(ids: readonly string[]): Promise<void>;
}

const database = new Database(databaseUrl);
await database.open();
const results: Record<string, unknown> = {};

/** Two calls sell one of five each. The COMMIT of the first is held up. */
async function sellTwice(locks: RedisLockService, sell: () => Promise<unknown>) {
  await database.put(5);
  await database.holdCommits();
  const first = sell();
  await database.whenWaiting(1);
  const isLocked = (await locks.inspect('stock:7')).mode !== null;
  const second = sell();
  if (!isLocked) await database.whenWaiting(2); // it has read, and waits for the row
  await database.letCommit();
  await Promise.all([first, second]);
  return { isLockedAtCommit: isLocked, left: await database.count() };
}

async function isFreeSoon(locks: RedisLockService): Promise<boolean> {
  for (const deadline = Date.now() + 5_000; Date.now() < deadline; await sleep(10)) {
    if ((await locks.inspect('stock:7')).mode === null) return true;
  }
  return false;
}

async function tell(
  library: string,
  { AppModule, Shop }: { AppModule: Type; Shop: Type<Shop> },
  Wrong: Type<Pick<Shop, 'sell'>>,
  more?: (app: INestApplicationContext) => Promise<unknown>,
): Promise<INestApplicationContext> {
  const metadata: unknown[] = Reflect.getMetadata('providers', AppModule) as unknown[];
  Reflect.defineMetadata('providers', [...metadata, Wrong], AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
  const locks = app.get(RedisLockService);
  const events: string[] = [];
  locks.observe(({ type }) => void events.push(type));
  const outside = await sellTwice(locks, () => app.get(Shop).sell('7'));
  const below = await sellTwice(locks, () => app.get(Wrong).sell('7'));
  const waiting = await sellTwice(locks, () => app.get(Shop).sellAll(['7']));
  events.length = 0;
  // The third line is not there: everything is rolled back, and the lease of the first two was one.
  await database.put(5);
  const error = await app
    .get(Shop)
    .sellAll(['7', '7', 'none'])
    .then(
      () => 'committed',
      () => 'rolled back',
    );
  const rollback = { error, left: await database.count(), isFree: await isFreeSoon(locks) };
  const acquired = events.filter((type) => type === 'acquired').length;
  results[library] = { below, outside, waiting, rollback: { ...rollback, acquired }, more: await more?.(app) };
  return app;
}

async function fencing(app: INestApplicationContext) {
  const [shop, locks] = [app.get(wrong.TypeormWrong), app.get(RedisLockService)];
  await database.put(5);
  await database.holdCommits();
  const first = shop.sellFenced('7');
  await database.whenWaiting(1);
  const second = shop.sellFenced('7');
  await database.whenWaiting(2); // its fence waits for the row
  await database.letCommit();
  await Promise.all([first, second]);
  const left = await database.count();
  const stale = await locks.acquire('stock:7', { leaseMs: 50, watchdog: false });
  await isFreeSoon(locks);
  await shop.sellFenced('7');
  const late = await shop.sellWith('7', stale.fencingToken).catch(({ message }: Error) => message);
  return { left, late, leftThen: await database.count() };
}

const typeorm = await tell('typeorm-transactional', await import('./with-typeorm.js'), wrong.TypeormWrong, fencing);
const cls = await tell('cls', await import('./with-nestjs-cls-transactional.js'), wrong.ClsWrong);
const mikroOrm = await import('./with-mikro-orm.js');
const mikro = await tell('mikro-orm', mikroOrm, wrong.MikroWrong);
const prisma = await tell('prisma', await import('./with-prisma.js'), wrong.PrismaWrong);

// Without the option transactions.
const lines: string[] = [];
const logger: LoggerService = { log() {}, error() {}, warn: (line: string) => void lines.push(line) };
const start = (Provider: Type) => {
  @Module({ imports: [RedisLockModule.forRoot({ connection: 'memory:' })], providers: [Provider] })
  class Refusing {}
  return NestFactory.createApplicationContext(Refusing, { logger, abortOnError: false });
};
const refusal = (error: unknown) => (error as Error).message.split('. ')[0];
const atStart = async (Provider: Type) => start(Provider).then(() => 'started', refusal);
const refused = { typeorm: await atStart(wrong.TypeormRefused), mikro: await atStart(wrong.MikroRefused) };
const withCls = await start(wrong.ClsRefused);
const calls = [await withCls.get(wrong.ClsRefused).sell('7').catch(refusal), withCls.get(wrong.ClsRefused).ran];
const withLocked = await start(wrong.Locked);
const locked = withLocked.get(wrong.Locked);
for (let call = 0; call < 2; call++) {
  await cls.get(DataSource).transaction(async () => locked.byTypeorm('7'));
  await prisma.get(PrismaClient).$transaction(async (tx) => {
    await tx.stock.count();
    await locked.byPrisma('7');
  });
}
results['refusals'] = { ...refused, cls: calls, warnings: lines.map((line) => line.split('. ')[0]) };

for (const app of [typeorm, cls, mikro, withCls, withLocked]) await app.close();
await prisma.get(PrismaClient).$disconnect();
await prisma.close();
await mikroOrm.orm.close();
await database.close();
console.log(JSON.stringify(results));
