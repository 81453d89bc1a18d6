import { PassThrough, Readable } from 'node:stream';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type MessageEvent,
  type NestInterceptor,
  Sse,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common';
import { defer, map, type Observable } from 'rxjs';
import { DistributedLock, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { PLATFORMS } from '../nest-apps.js';
import { type Call, useHandlerShop } from './handler-shop.js';
import { gate } from '../../support/expect/tracked.js';

let file = new PassThrough();
let mayEnd = gate();

class Instead implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map(() => 'something else'));
  }
}

const held = (locks: RedisLockService): string => `held: ${locks.current()?.isHeld()}`;
const later = (locks: RedisLockService): Observable<string> =>
  defer(async () => {
    await mayEnd.opened;
    return held(locks);
  });

@Controller()
class ExportsController {
  @Inject() readonly locks!: RedisLockService;

  @Get('file')
  @LockHandler('exports')
  async file(): Promise<StreamableFile> {
    return new StreamableFile(file);
  }

  @Get('readable')
  @LockHandler('exports')
  async readable(): Promise<Readable> {
    return file;
  }

  @Get('rows')
  @LockHandler('exports')
  async *rows(): AsyncGenerator<string> {
    yield 'first ';
    await mayEnd.opened;
    yield 'last';
  }

  @Get('replaced')
  @UseInterceptors(Instead)
  @LockHandler('exports')
  replacedInside(): StreamableFile {
    return new StreamableFile(file);
  }

  @Get('replaced-outside')
  @LockHandler('exports')
  @UseInterceptors(Instead)
  replacedOutside(): StreamableFile {
    return new StreamableFile(file);
  }

  @Get('observable')
  @LockHandler('exports')
  async observable(): Promise<Observable<string>> {
    return later(this.locks);
  }

  @Sse('events')
  @LockHandler('exports')
  async events(): Promise<Observable<MessageEvent>> {
    return later(this.locks).pipe(map((data) => ({ data })));
  }

  @Get('lost')
  @LockHandler({ key: 'exports', leaseMs: 50, watchdog: false })
  lost(): StreamableFile {
    return new StreamableFile(file);
  }

  @Get('both')
  @LockHandler('exports')
  @DistributedLock('exports')
  async both(): Promise<StreamableFile> {
    return new StreamableFile(file);
  }
}

@Injectable()
class Exports {
  @DistributedLock('exports')
  async open(): Promise<Readable> {
    return file;
  }
}

describe.each(PLATFORMS)('@LockHandler and answers that are sent bit by bit, on %s', (_, adapter) => {
  beforeEach(() => {
    [file, mayEnd] = [new PassThrough(), gate()];
  });
  const shop = useHandlerShop('exports', adapter, { controllers: [ExportsController], providers: [Exports] });
  afterEach(() => {
    mayEnd.open();
    file.destroy();
  });

  const holders = (): Promise<number> => shop().holders();
  const call = (path: string): Call => shop().call(path);

  it.each(['file', 'readable', 'both'])('hold the lock until the stream has ended: %s', async (path) => {
    const answer = call(path);
    file.write('first ');
    await eventually(() => expect(answer.text).toBe('first '));
    expect(await holders()).toBe(1);
    file.end('last');
    await eventually(() => expect(answer).toMatchObject({ text: 'first last', ended: true }));
    await eventually(async () => expect(await holders()).toBe(0));
  });

  it.each(['file', 'readable'])('free the lock when the client goes away: %s', async (path) => {
    const answer = call(path);
    file.write('first ');
    await eventually(() => expect(answer.text).toBe('first '));
    answer.hangUp();
    await eventually(async () => expect(await holders()).toBe(0));
  });

  it.each(['replaced', 'replaced-outside'])(
    'free the lock when something else was sent in place of the stream: %s',
    async (path) => {
      expect(await (await fetch(`${shop().url}/${path}`)).text()).toBe('something else');
      await eventually(async () => expect(await holders()).toBe(0));
    },
  );

  it.each([
    ['observable', 'held: true'],
    ['events', 'data: held: true'],
  ])('hold the lock until the Observable that a promise gives has ended: %s', async (path, text) => {
    const answer = call(path);
    await eventually(async () => expect(await holders()).toBe(1));
    mayEnd.open();
    await eventually(() => expect(answer.text).toContain(text));
    await eventually(async () => expect(await holders()).toBe(0));
  });

  it('break off when the lease is lost', async () => {
    const answer = call('lost');
    file.write('first ');
    await eventually(() => expect(answer.ended).toBe(true));
    expect(file.destroyed).toBe(true);
  });

  it('are refused from any method with @DistributedLock', async () => {
    const { message } = await rejection(shop().app.get(Exports).open());
    expect(message).toMatch('Exports.open returned a stream under the lock of "exports"');
    expect(file.destroyed).toBe(true);
  });
});
