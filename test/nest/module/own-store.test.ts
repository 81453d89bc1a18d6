import { Test, type TestingModule } from '@nestjs/testing';
import { InvalidLockOptionsError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import type { StoreContext, StoreFactory } from 'nestjs-redis-lock/store';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { clockOf } from '../../../lib/nest/service-parts.js';
import { TEST_STORES } from '../../../lib/nest/tokens.js';
import { rejection } from '../../support/expect/eventually.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { jobsOn } from '../../support/world/forgetful.js';

const started: TestingModule[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((module) => module.close()));
});

async function start(options: object): Promise<RedisLockService> {
  const module = await Test.createTestingModule({ imports: [RedisLockModule.forRoot(options as never)] }).compile();
  started.push(module);
  return module.get(RedisLockService);
}

const memory: StoreFactory = ({ instanceId }) => ({ locks: new MemoryLockStore({ instanceId }) });

const nightly = { job: 'nightly', tick: '1', overlap: 'skip', onCrash: 'skip', keepMs: 60_000, lock: {} } as const;

describe('the option store', () => {
  it('keeps the locks where it says, and is told for which service', async () => {
    const server = new MemoryServer();
    const contexts: StoreContext[] = [];
    const store: StoreFactory = async (context) => {
      contexts.push(context);
      return { locks: new MemoryLockStore({ instanceId: context.instanceId, server }) };
    };
    const locks = await start({ store, instanceId: 'a', keyPrefix: 'shop', leaseMs: 5_000 });
    expect(contexts).toEqual([
      { service: 'default', instanceId: 'a', keyPrefix: 'shop', defaults: expect.objectContaining({ leaseMs: 5_000 }) },
    ]);
    await locks.using('x', async () => expect(server.members('x')).toHaveLength(1));
    expect(server.isEmpty).toBe(true);
  });

  it('counts by the clock of the stores, also outside of core', async () => {
    const clock = new FakeClock();
    const server = new MemoryServer(clock);
    const locks = await start({
      store: ({ instanceId }: StoreContext) => ({ locks: new MemoryLockStore({ instanceId, server }), clock }),
      watchdog: false,
      leaseMs: 1_000,
    });
    expect(clockOf(locks)).toBe(clock);
    const lease = await locks.acquire('x');
    await clock.advance(1_001);
    expect(lease.signal.aborted).toBe(true);
  });

  it('refuses what its stores lack, with the reason', async () => {
    const locks = await start({ store: memory });
    const refused: [string, () => Promise<unknown>][] = [
      ['LockUnavailableError', () => locks.runSingleton(nightly, async () => 1)],
    ];
    for (const [name, call] of refused) {
      const error = await rejection(Promise.resolve().then(call));
      expect(error.name).toBe(name);
      expect(error.message).toContain('the option store returned no ');
    }
  });

  it.each([
    ['nothing', () => undefined, 'store must return { locks, jobs?, clock?, random? }, not undefined.'],
    ['no locks', () => ({}), 'locks in the result of store must have the methods acquire, rotate'],
    [
      'claims without their end',
      ({ instanceId }: StoreContext) => ({ locks: new MemoryLockStore({ instanceId }), jobs: { claim: () => {} } }),
      'jobs in the result of store must have the methods claim, end. It lacks end.',
    ],
    [
      'half of the records of jobs',
      ({ instanceId }: StoreContext) => ({
        locks: new MemoryLockStore({ instanceId }),
        jobs: { claim: () => {}, end: () => {}, pause: () => {}, resume: () => {} },
      }),
      'jobs in the result of store must have the methods claim, end, note, look, pause, resume, register, list. ' +
        'It lacks note, look, register, list.',
    ],
    [
      'another instance id',
      () => ({ locks: new MemoryLockStore({ instanceId: 'other' }) }),
      'locks.instanceId in the result of store must be the instanceId that store was called with (me), not "other".',
    ],
    [
      'a client id without it',
      () => ({ locks: new MemoryLockStore({ instanceId: 'me', clientId: 'you/1' }) }),
      'locks.clientId in the result of store must be a text that begins with the instanceId (me), not "you/1".',
    ],
  ])('that returns %s keeps the application from starting', async (_, store, message) => {
    const error = await rejection(start({ store, instanceId: 'me' }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toContain(message);
  });

  it.each([
    [{ store: memory, connection: 'memory:' }, 'Set either connection or store, not both.'],
    [{ store: memory, quorum: { connections: ['redis://a'] } }, 'Set either quorum or store, not both.'],
    [{ store: {} }, 'store must be a function, not '],
    [{ store: memory, durability: { replicas: 1 } }, 'durability is for a connection.'],
    [{ store: memory, restartQuarantineMs: 60_000 }, 'restartQuarantineMs is for a connection.'],
  ])('is refused at once in %j', (options, message) => {
    const register = (): unknown => RedisLockModule.forRoot(options as never);
    expect(register).toThrow(InvalidLockOptionsError);
    expect(register).toThrow(message);
  });

  it('of every registration is replaced by overriding one provider', async () => {
    const names: string[] = [];
    const store: StoreFactory = (context) => {
      names.push(context.service);
      return memory(context);
    };
    const connection = 'redis://nowhere.invalid:1';
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ connection }), RedisLockModule.forRoot({ connection, service: 'billing' })],
    })
      .overrideProvider(TEST_STORES)
      .useValue({
        place: (context: StoreContext) => ({
          stores: store(context),
          telemetry: { start: () => {} },
          created: () => {},
        }),
      })
      .compile();
    started.push(module);
    expect(names.sort()).toEqual(['billing', 'default']);
    await module.get(RedisLockService).using('x', async () => {});
  });

  it('may have ticks without a record of jobs', async () => {
    const server = new MemoryServer();
    const locks = await start({
      store: ({ instanceId }: StoreContext) => ({
        locks: new MemoryLockStore({ instanceId, server }),
        jobs: jobsOn(server),
      }),
    });
    await expect(locks.runSingleton(nightly, async () => 'ran')).resolves.toBe('ran');
  });
});
