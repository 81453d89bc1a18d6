import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Get, Injectable, Query } from '@nestjs/common';
import {
  DistributedLock,
  key,
  LockAbortedError,
  LockExceptionFilter,
  LockHandler,
  ReadLock,
  RedisLockService,
} from 'nestjs-redis-lock';
import { inMemory, useApps } from '../nest-apps.js';
import { eventually } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';

let finish = gate();
let began: string[] = [];
let stored: string[] = [];

/** Ends when the test lets it, or when it is asked to stop; stores only in the first case. */
async function render(text: string, signal: AbortSignal): Promise<string> {
  began.push(text);
  const asked = new Promise((resolve) => signal.addEventListener('abort', resolve));
  await Promise.race([finish.opened, asked]);
  signal.throwIfAborted();
  stored.push(text);
  return text;
}

@Injectable()
class Previews {
  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock({ key: (page: string) => key`page:${page}`, onBusy: 'cancelHolder', cancellable: true })
  async newest(_page: string, text: string): Promise<string> {
    return render(text, this.locks.current()!.signal);
  }

  @DistributedLock({ key: (page: string) => key`page:${page}`, onBusy: 'cancelHolder', cancellable: true })
  async wrapped(_page: string, text: string): Promise<string> {
    const { signal } = this.locks.current()!;
    return render(text, signal).catch((error: unknown) => {
      // As the API of Node wraps it.
      throw signal.aborted ? Object.assign(new Error('stopped', { cause: error }), { name: 'AbortError' }) : error;
    });
  }
}

@Controller()
class PreviewController {
  constructor(private readonly locks: RedisLockService) {}

  @Get('preview')
  @LockHandler({ key: 'preview', onBusy: 'cancelHolder', cancellable: true })
  async preview(@Query('text') text: string): Promise<string> {
    return render(text, this.locks.current()!.signal);
  }

  /** Ends with the error of an API of Node. */
  @Get('wrapped')
  @LockHandler({ key: 'preview', onBusy: 'cancelHolder', cancellable: true })
  async wrapped(@Query('text') text: string): Promise<string> {
    began.push(text);
    if (text === 'a') await sleep(60_000, undefined, { signal: this.locks.current()!.signal });
    else await finish.opened;
    stored.push(text);
    return text;
  }

  @Get('deaf')
  @LockHandler({ key: 'deaf', onBusy: 'cancelHolder', cancellable: true })
  async deaf(@Query('text') text: string): Promise<string> {
    const { signal } = this.locks.current()!;
    began.push(text);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    began.push('asked to stop');
    await finish.opened;
    stored.push(text);
    return text;
  }
}

describe("onBusy: 'cancelHolder'", () => {
  const start = useApps();

  beforeEach(() => {
    finish = gate();
    began = [];
    stored = [];
  });

  it.each(['newest', 'wrapped'] as const)('a method replaces its older calls: %s', async (method) => {
    const { app } = await start({ imports: [inMemory()], providers: [Previews] });
    const previews = app.get(Previews);
    const calls = [previews[method]('7', 'n')];
    await eventually(() => expect(began).toEqual(['n']));
    calls.push(previews[method]('7', 'ne'), previews[method]('7', 'new'));
    const settled = Promise.allSettled(calls);
    const other = previews[method]('8', 'other');
    await eventually(() => expect(began).toEqual(expect.arrayContaining(['n', 'new', 'other'])));
    finish.open();
    const outcomes = await settled;
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    for (const outcome of outcomes.slice(0, 2) as PromiseRejectedResult[]) {
      expect(outcome.reason).toBeInstanceOf(LockAbortedError);
      expect(outcome.reason).toMatchObject({ reason: 'superseded', resource: 'page:7' });
    }
    expect(await other).toBe('other');
    expect(stored.sort()).toEqual(['new', 'other']);
  });

  it.each(['preview', 'wrapped'])('a request that a newer one replaces is answered with 409: %s', async (path) => {
    const { url } = await start({
      imports: [inMemory()],
      controllers: [PreviewController],
      configure: (app) => app.useGlobalFilters(new LockExceptionFilter()),
    });
    const older = fetch(`${url}/${path}?text=a`);
    await eventually(() => expect(began).toEqual(['a']));
    const newer = fetch(`${url}/${path}?text=b`);
    expect((await older).status).toBe(409);
    expect(await (await older).json()).toMatchObject({
      code: 'LOCK_ABORTED',
      message: 'A newer request replaces this one.',
    });
    await eventually(() => expect(began).toEqual(['a', 'b']));
    finish.open();
    expect((await newer).status).toBe(200);
    expect(stored).toEqual(['b']);
  });

  it.each<[string, object, string]>([
    ['several resources', { key: ['a', 'b'] }, 'may have another holder'],
    ['a shared mode', { key: 'a', mode: 'read' }, 'mode read'],
    ['a call that does not wait', { key: 'a', waitMs: 0 }, 'Set waitMs'],
    ['a minimum', { key: 'a', minHoldMs: 5 }, 'Leave minHoldMs out'],
  ])('is refused when the class is defined, with %s', (_what, options, why) => {
    for (const newest of [{ onBusy: 'cancelHolder' }, { cancellable: true }]) {
      expect(() => {
        class Wrong {
          @DistributedLock({ ...options, ...newest } as unknown as { key: string })
          async run(): Promise<void> {}
        }
        return Wrong;
      }).toThrow(why);
    }
  });

  it('is refused where several callers hold the resource', () => {
    expect(() => {
      class Wrong {
        @ReadLock({ key: 'a', onBusy: 'cancelHolder' } as unknown as { key: string })
        async run(): Promise<void> {}
      }
      return Wrong;
    }).toThrow(/onBusy/);
  });
});
