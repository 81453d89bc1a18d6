import { jest } from '@jest/globals';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { LockExceptionFilter, RedisLockService } from 'nestjs-redis-lock';
import { SingletonJobs } from 'nestjs-redis-lock/schedule';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

type Package = typeof import('../../../lib/index.js');
type SchedulePackage = typeof import('../../../lib/schedule.js');

// Called before the second copy is loaded, as in an application that imports its own modules before its libraries.
const lockModule = inMemory({ waitMs: 0 });

jest.resetModules();
/** The second copy of the package, as a CommonJS library in an ES module application loads it. */
const second: Package = await import('../../../lib/index.js');
const secondSchedule: SchedulePackage = await import('../../../lib/schedule.js');

/** Compiled against the second copy: TypeScript writes the class of a parameter into this metadata. */
@Injectable()
@Reflect.metadata('design:paramtypes', [second.RedisLockService, Object])
class LibraryService {
  constructor(
    readonly byClass: RedisLockService,
    @second.InjectRedisLock() readonly byToken: RedisLockService,
  ) {}

  @second.DistributedLock({ key: 'library', onBusy: 'skip' })
  async once(): Promise<string | undefined> {
    return 'done';
  }

  @second.DistributedLock('library')
  async orThrow(): Promise<string> {
    return 'done';
  }

  @second.LeaderOnly('library')
  async whileLeading(): Promise<string | undefined> {
    return 'led';
  }
}

@Controller()
class LibraryController {
  @Get('library')
  @second.LockHandler('library')
  handle(): string {
    return 'handled';
  }
}

@Injectable()
@Reflect.metadata('design:paramtypes', [secondSchedule.SingletonJobs, Object])
class LibraryJobs {
  constructor(
    readonly byClass: SingletonJobs,
    @secondSchedule.InjectSingletonJobs() readonly byToken: SingletonJobs,
  ) {}

  @secondSchedule.SingletonCron('0 0 0 1 1 *', { name: 'yearly' })
  async yearly(): Promise<string | undefined> {
    return 'ran';
  }
}

@Module({ providers: [LibraryService, LibraryJobs], controllers: [LibraryController] })
class LibraryModule {}

describe('a library with a copy of the package of its own', () => {
  const start = useApps();
  const startBoth = () => start({ imports: [lockModule, LibraryModule] });

  it('is a test of two copies', () => {
    expect(second.RedisLockService).not.toBe(RedisLockService);
  });

  it('has the lock service of the application injected, by class and by token', async () => {
    const { app } = await startBoth();
    const { byClass, byToken } = app.get(LibraryService);
    expect(byClass).toBe(app.get(RedisLockService));
    expect(byToken).toBe(byClass);
    expect(byClass).toBeInstanceOf(RedisLockService);
  });

  it('is locked out by the application, and skips', async () => {
    const { app } = await startBoth();
    const library = app.get(LibraryService);
    const lease = await app.get(RedisLockService).acquire('library');
    expect(await library.once()).toBe(undefined);
    expect(await rejection(library.orThrow())).toBeInstanceOf(second.LockBusyError);
    await lease.release();
    expect(await library.once()).toBe('done');
  });

  it('is answered by the exception filter of the application', async () => {
    const { app, url } = await start({
      imports: [lockModule, LibraryModule],
      configure: (each) => each.useGlobalFilters(new LockExceptionFilter()),
    });
    await using lease = await app.get(RedisLockService).acquire('library');
    expect((await fetch(`${url}/library`)).status).toBe(423);
    expect(lease.isHeld()).toBe(true);
  });
});
