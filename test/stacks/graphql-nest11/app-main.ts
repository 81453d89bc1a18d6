// The program of graphql-nest11.slow.test.ts: an application on Nest 11, and its client. Prints the client's view.
import 'reflect-metadata';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type CanActivate, type ExecutionContext, Module, UseGuards } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { Args, GqlExecutionContext, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import {
  DistributedLock,
  key,
  LockExceptionFilter,
  LockHandler,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';

const [connection] = process.argv.slice(2) as [string];
const began: string[] = [];
let open!: () => void;
const opened = new Promise<void>((resolve) => (open = resolve));

class KnownUser implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return GqlExecutionContext.create(context).getContext().req.headers['x-user'] !== undefined;
  }
}

@Resolver()
class Orders {
  constructor(readonly locks: RedisLockService) {}

  @Mutation(() => String)
  @UseGuards(KnownUser)
  @DistributedLock((id: string) => key`locked:${id}`)
  async pay(@Args('id') _id: string): Promise<string> {
    return this.locks.current()!.resource;
  }

  @LockHandler((context) => key`handled:${GqlExecutionContext.create(context).getArgs<{ id: string }>().id}`)
  @UseGuards(KnownUser)
  @Query(() => String)
  report(@Args('id') _id: string): string {
    return this.locks.current()!.resource;
  }

  @Query(() => String, { nullable: true })
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async busy(): Promise<string> {
    return 'never';
  }

  @Query(() => String, { nullable: true })
  @LockHandler({ key: 'slow', waitMs: Infinity })
  async slow(@Args('client') client: string): Promise<string> {
    began.push(client);
    await opened;
    return client;
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({ connection }),
    GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, playground: false }),
  ],
  providers: [Orders, KnownUser, { provide: APP_FILTER, useClass: LockExceptionFilter }],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'], forceCloseConnections: true });
await app.listen(0, '127.0.0.1');
const url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}/graphql`;
const locks = app.get(RedisLockService);

async function ask(query: string, headers: Record<string, string> = {}): Promise<unknown> {
  const body = JSON.stringify({ query });
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  return { status: response.status, ...((await response.json()) as object) };
}

const locked = await ask('mutation { pay(id: "7") }', { 'x-user': 'eve' });
const handled = await ask('{ report(id: "7") }', { 'x-user': 'eve' });
const guarded = [await ask('mutation { pay(id: "7") }'), await ask('{ report(id: "7") }')];
const busy = await locks.using('busy', () => ask('{ busy }'));

/** Waits until as many calls as this wait for the slow query. */
async function waiting(calls: number): Promise<void> {
  while ((await locks.inspect('slow')).waiters.length !== calls)
    await new Promise((resolve) => setTimeout(resolve, 10));
}
const first = ask('{ slow(client: "first") }');
while (began.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
const leaver = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } });
leaver.on('error', () => undefined).end(JSON.stringify({ query: '{ slow(client: "leaver") }' }));
await waiting(1);
leaver.destroy();
await waiting(0);
const third = ask('{ slow(client: "third") }');
await waiting(1);
open();
await Promise.all([first, third]);
await app.close();

const { version } = (await import('@nestjs/core/package.json', { with: { type: 'json' } })).default;
process.stdout.write(JSON.stringify({ version, locked, handled, guarded, busy, began }));
