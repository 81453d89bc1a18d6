import { request } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { RedisLockService } from 'nestjs-redis-lock';
import { inMemory, type RunningApp, type StartOptions, useApps } from '../nest-apps.js';

/** The client's part of the response so far, and a way to disconnect. */
export interface Call {
  text: string;
  ended: boolean;
  hangUp(): void;
}

/** An application whose handlers lock one resource. */
export interface HandlerShop extends RunningApp {
  readonly locks: RedisLockService;
  /** The number of holders. */
  holders(): Promise<number>;
  /** The number of waiters. */
  waiters(): Promise<number>;
  /** Sends a request, and does not wait for the answer. */
  call(path: string): Call;
}

/** Starts a shop before each test. */
export function useHandlerShop(
  resource: string,
  adapter: () => AbstractHttpAdapter,
  metadata: Pick<StartOptions, 'controllers' | 'providers'>,
): () => HandlerShop {
  const start = useApps();
  let shop: HandlerShop;
  beforeEach(async () => {
    const running = await start({ ...metadata, imports: [inMemory()], adapter: adapter() });
    const locks = running.app.get(RedisLockService);
    shop = {
      ...running,
      locks,
      holders: async () => (await locks.inspect(resource)).holders.length,
      waiters: async () => (await locks.inspect(resource)).waiters.length,
      call: (path) => call(`${running.url}/${path}`),
    };
  });
  return () => shop;
}

function call(url: string): Call {
  const answer: Call = { text: '', ended: false, hangUp: () => void sent.destroy() };
  const sent = request(url, (response) => {
    response.on('data', (chunk: Buffer) => (answer.text += chunk.toString()));
    response.on('error', () => undefined);
    response.on('close', () => (answer.ended = true));
  });
  sent.on('error', () => undefined).end();
  return answer;
}
