import { Test } from '@nestjs/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { inMemory, LogBook, useApps } from '../nest-apps.js';

describe('the hint at shutdown hooks', () => {
  const redis = useRedis();
  const start = useApps();
  const others = process.rawListeners('SIGTERM') as (() => void)[];
  beforeEach(() => others.forEach((listener) => process.off('SIGTERM', listener)));
  afterEach(() => others.forEach((listener) => process.on('SIGTERM', listener)));
  const hints = (lines: readonly string[]) => lines.filter((line) => line.includes('SIGTERM'));

  it('is logged once where no code listens for SIGTERM', async () => {
    const { log } = await start({ imports: [inMemory({ connection: redis().url, leaseMs: 5_000 })] });
    await eventually(() =>
      expect(hints(log.at('log'))).toEqual([
        'No code listens for SIGTERM, so that signal will end this process without releasing its locks. They stay ' +
          'taken for up to 5 s (leaseMs). Call app.enableShutdownHooks(). See docs/guide/getting-started.md#development.',
      ]),
    );
  });

  it('says to a process without a server how it ends', async () => {
    const log = new LogBook();
    const imports = [inMemory({ connection: redis().url, leaseMs: 5_000 })];
    const app = await Test.createTestingModule({ imports }).setLogger(log).compile();
    await app.init();
    await eventually(() =>
      expect(hints(log.at('log'))).toEqual([
        'No code listens for SIGTERM, so that signal will end this process without releasing its locks. They stay ' +
          'taken for up to 5 s (leaseMs). Call app.enableShutdownHooks(). When its work is done, call app.close(): ' +
          'connections to Redis keep the process alive. See docs/guide/getting-started.md#development.',
      ]),
    );
    await app.close();
  });

  it('is not logged with the hooks, even late ones, nor without a Redis', async () => {
    const { app, log } = await start({
      imports: [inMemory({ connection: redis().url }), inMemory({ service: 'other' })],
    });
    app.enableShutdownHooks();
    await sleep(1_200);
    expect(hints(log.at('log'))).toEqual([]);
    await app.close();
    const inProcess = await start({ imports: [inMemory()] });
    await sleep(1_200);
    expect(hints(inProcess.log.at('log'))).toEqual([]);
  });
});
