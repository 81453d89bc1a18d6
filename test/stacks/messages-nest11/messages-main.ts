// Runs the stories of messages.slow.test.ts on Nest 11, and prints the clients' messages.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, type INestApplication, Inject, Module, type Type, UseFilters } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { ClientProxyFactory, MessagePattern, Payload, Transport } from '@nestjs/microservices';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  DistributedLock,
  LockExceptionFilter,
  LockHandler,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { firstValueFrom } from 'rxjs';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { connectSocketIo, connectWs, type GatewayClient } from '../gateways/clients.js';

type Connect = (url: string) => Promise<GatewayClient>;

/** Each answer names the resource under whose lock it was made. */
@WebSocketGateway()
class UnfilteredGateway {
  @Inject() readonly locks!: RedisLockService;
  ran = 0;

  @DistributedLock((id: string) => `order:${id}`)
  @SubscribeMessage('method')
  async method(@MessageBody() _id: string) {
    return { event: 'done', data: this.locks.current()?.resource };
  }

  @SubscribeMessage('handler')
  @LockHandler((context) => `order:${context.switchToWs().getData<string>()}`)
  handler() {
    this.ran++;
    return { event: 'done', data: this.locks.current()?.resource };
  }

  @SubscribeMessage('busy')
  @LockHandler({ key: 'busy', waitMs: 0 })
  busy() {}
}

@WebSocketGateway()
@UseFilters(new LockExceptionFilter())
class FilteredGateway extends UnfilteredGateway {}

@Controller()
class StockController {
  @MessagePattern('below')
  @DistributedLock((sku: string) => `sku:${sku}`)
  async below(@Payload() sku: string): Promise<string> {
    return `counted ${sku}`;
  }

  @MessagePattern('busy')
  @LockHandler({ key: 'busy', waitMs: 0 })
  busy(): void {}
}

async function start(gateway: Type<UnfilteredGateway>, configure: (app: INestApplication) => unknown) {
  @Module({
    imports: [RedisLockModule.forRoot({ connection: 'memory:', shutdown: { drainMs: 0 } })],
    controllers: [StockController],
    providers: [
      gateway,
      ...(gateway === UnfilteredGateway ? [{ provide: APP_FILTER, useClass: LockExceptionFilter }] : []),
    ],
  })
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger: false, forceCloseConnections: true });
  app.useGlobalFilters(new LockExceptionFilter());
  await configure(app);
  await app.listen(0, '127.0.0.1');
  const url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
  return { app, url, locks: app.get(RedisLockService), gateway: app.get(gateway) };
}

async function gateways(adapter: (app: INestApplication) => WsAdapter | IoAdapter, connect: Connect) {
  const use = (app: INestApplication): unknown => app.useWebSocketAdapter(adapter(app));
  const filtered = await start(FilteredGateway, use);
  const client = await connect(filtered.url);
  const answers = [await client.ask('method', '7'), await client.ask('handler', '7')];

  const busy = await filtered.locks.acquire('busy');
  const told = await client.ask('busy', '7');
  const acknowledged = await client.askForAck?.('busy', '7');
  await busy.release();

  const lease = await filtered.locks.acquire('order:7');
  const waiters = async (): Promise<number> => (await filtered.locks.inspect('order:7')).waiters.length;
  client.send('handler', '7');
  await until(async () => (await waiters()) === 1);
  client.leave();
  await until(async () => (await waiters()) === 0);
  await lease.release();
  const { ran } = filtered.gateway;
  await filtered.app.close();
  return { answers, told, acknowledged, ran, byGlobalFilters: await heardWithGlobalFilters(use, connect) };
}

/** The client's message with both kinds of global filters, and none on the gateway. */
async function heardWithGlobalFilters(
  use: (app: INestApplication) => unknown,
  connect: Connect,
): Promise<GatewayClient['heard']> {
  const { app, url, locks } = await start(UnfilteredGateway, use);
  await locks.acquire('busy');
  const client = await connect(url);
  client.send('busy');
  await client.ask('handler', '8');
  await until(async () => client.heard.some(({ event }) => event === 'done'));
  client.leave();
  await app.close();
  return client.heard;
}

async function hybrid(inheritAppConfig: boolean) {
  const { app, locks } = await start(FilteredGateway, async (service) => {
    service.connectMicroservice(
      { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } },
      { inheritAppConfig },
    );
    await service.startAllMicroservices();
  });
  const { port } = app.getMicroservices()[0]!.unwrap<{ address(): AddressInfo }>().address();
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
  const counted: unknown = await firstValueFrom(client.send('below', 'A1'));
  await locks.acquire('busy');
  const refused: unknown = await firstValueFrom(client.send('busy', '')).catch((error: unknown) => error);
  await client.close();
  await app.close();
  return { counted, refused };
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAt = Date.now() + 15_000;
  while (!(await isSo())) {
    assert(Date.now() < giveUpAt, 'It did not happen in time');
    await sleep(5);
  }
}

const stories = {
  'socket.io': await gateways(
    (app) => new IoAdapter(app),
    (url) => connectSocketIo(io, url),
  ),
  ws: await gateways(
    (app) => new WsAdapter(app),
    (url) => connectWs(WebSocket, url),
  ),
  inheriting: await hybrid(true),
  separate: await hybrid(false),
};
console.log(JSON.stringify(stories));
