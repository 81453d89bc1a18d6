import { inspect } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  DistributedLock,
  type Lease,
  LockBusyError,
  type LockEvent,
  LockUnavailableError,
  RedisLockService,
} from 'nestjs-redis-lock';
import { everyTextOf } from './every-text-of.js';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';
import { useRedis } from '../../support/redis/redis-server.js';

const PASSWORD = 'hunter2-of-redis';
let inside: { lease: Lease; texts: string[] } | undefined;

@Injectable()
class Reports {
  constructor(readonly locks: RedisLockService) {}

  @DistributedLock('reports')
  async build(): Promise<void> {
    const lease = this.locks.current()!;
    inside = { lease, texts: [...everyTextOf(lease), ...everyTextOf(this)] };
  }
}

describe('nothing that is printed shows a secret', () => {
  const redis = useRedis({ args: ['--requirepass', PASSWORD] });
  const start = useApps();
  const startReports = async (options: Parameters<typeof inMemory>[0] = {}) => {
    const connection = { host: '127.0.0.1', port: redis().port, password: PASSWORD };
    const { app, log } = await start({ imports: [inMemory({ connection, ...options })], providers: [Reports] });
    return { app, log, reports: app.get(Reports), locks: app.get(RedisLockService) };
  };
  /** The owner ids in Redis: anyone who knows one can release the lock. */
  const owners = async (): Promise<string[]> => {
    await using admin = Object.assign(new Redis({ port: redis().port, password: PASSWORD }), {
      [Symbol.asyncDispose]: async () => admin.disconnect(),
    });
    const texts = await Promise.all((await admin.keys('lock:{*}')).map((key) => admin.get(key)));
    // The id comes first, and what is secret of it behind the last slash.
    return texts.map((text) => text!.split(' ')[0]!).map((owner) => owner.slice(owner.lastIndexOf('/') + 1));
  };
  const expectNoSecret = (texts: string[], secrets: string[]): void => {
    for (const secret of [PASSWORD, ...secrets]) {
      expect(secret.length).toBeGreaterThan(8);
      for (const text of texts) expect(text).not.toContain(secret);
    }
  };

  it('the service, a lease, and an object with locked methods: no password, no owner id', async () => {
    const { locks, reports } = await startReports();
    const lease = await locks.acquire('mine');
    const both = await locks.acquire(['a', 'b']);
    const secrets = await owners();
    expect(secrets).toHaveLength(3);
    await locks.using('mine too', async (held) => {
      const texts = [locks, reports, lease, both, held, { nested: [lease] }].flatMap((value) => everyTextOf(value));
      expectNoSecret(texts, [...secrets, ...(await owners())]);
    });
    await reports.build();
    expectNoSecret(inside!.texts, []);
    await Promise.all([lease.release(), both.release()]);
  });

  it('a lease prints what somebody wants to know of it', async () => {
    const { locks } = await startReports();
    await using lease = await locks.acquire('orders', { leaseMs: 60_000 });
    expect(JSON.parse(JSON.stringify(lease))).toEqual({
      resource: 'orders',
      mode: 'exclusive',
      fencingToken: lease.fencingToken,
      isHeld: true,
      remainingMs: expect.any(Number),
    });
    expect(inspect(lease)).toMatch(/^Lease \{.*resource: 'orders'.*isHeld: true/s);
  });

  it('errors and events of a working Redis', async () => {
    const { locks } = await startReports();
    const events: LockEvent[] = [];
    locks.observe((event) => events.push(event));
    await using _lease = await locks.acquire('busy');
    const error = await rejection(locks.acquire('busy', { waitMs: 0 }));
    expect(error).toBeInstanceOf(LockBusyError);
    expect(events.map(({ type }) => type)).toEqual(['acquired', 'notAcquired']);
    expectNoSecret(
      [error, events].flatMap((value) => everyTextOf(value)),
      await owners(),
    );
  });

  it('errors, events and the log of a Redis that refuses the password', async () => {
    const wrong = 'not-hunter2-of-redis';
    const events: LockEvent[] = [];
    const { locks, log } = await startReports({
      connection: `redis://someone:${wrong}@127.0.0.1:${redis().port}`,
      attemptTimeoutMs: 200,
      waitMs: 200,
      observers: [(event) => events.push(event)],
    });
    const error = await rejection(locks.acquire('x'));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('WRONGPASS');
    const texts = [
      ...[error, error.cause, events, locks].flatMap((value) => everyTextOf(value)),
      ...log.lines.map(({ message }) => message),
    ];
    expectNoSecret(texts, [wrong]);
  });
});
