import {
  Body,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Param,
  Post,
  UploadedFile,
  UseInterceptors,
  Version,
  VersioningType,
} from '@nestjs/common';
import { FileInterceptor } from '@nestjs/platform-express';
import { DistributedLock, key, LockExceptionFilter, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { inMemory, type RunningApp, useApps } from '../nest-apps.js';
import { PLATFORMS } from '../platforms.js';
import { timeoutInterceptor } from '../timeout-interceptor.js';

let timeIsUp = gate();
let mayEnd = gate();
let events: string[] = [];

const TimeoutInterceptor = timeoutInterceptor(() => timeIsUp.opened);

interface Upload {
  readonly originalname: string;
  readonly buffer: Buffer;
}

/** Nothing is in it before the upload is read. */
const bodyOf = (context: ExecutionContext): { album: string } =>
  context.switchToHttp().getRequest<{ body?: { album: string } }>().body ?? ({} as { album: string });

@Controller('photos')
class PhotosController {
  @Inject() readonly locks!: RedisLockService;

  @Post('method')
  @DistributedLock((_file, { album }: { album: string }) => key`album:${album}`)
  @UseInterceptors(FileInterceptor('photo'))
  async method(@UploadedFile() file: Upload, @Body() _body: { album: string }): Promise<string> {
    return this.#describe(file);
  }

  // The lower interceptor runs first: the file and the fields are read, then the lock is acquired.
  @Post('handler')
  @LockHandler((context) => key`album:${bodyOf(context).album}`)
  @UseInterceptors(FileInterceptor('photo'))
  async handler(@UploadedFile() file: Upload): Promise<string> {
    return this.#describe(file);
  }

  @Post('too-early')
  @UseInterceptors(FileInterceptor('photo'))
  @LockHandler((context) => key`album:${bodyOf(context).album}`)
  async tooEarly(@UploadedFile() file: Upload): Promise<string> {
    return this.#describe(file);
  }

  #describe({ originalname, buffer }: Upload): string {
    return `${originalname} (${String(buffer)}) under ${this.locks.current()?.resource}`;
  }
}

@Controller('orders')
@UseInterceptors(TimeoutInterceptor)
class OrdersController {
  @Get(':who')
  @DistributedLock({ key: 'orders', waitMs: 30_000 })
  async pay(@Param('who') who: string): Promise<void> {
    events.push(`${who} began`);
    await mayEnd.opened;
    events.push(`${who} ended`);
  }
}

@Controller({ path: 'stock', version: '1' })
class StockController {
  @Inject() readonly locks!: RedisLockService;

  @Version('1')
  @DistributedLock((sku: string) => key`stock-v1:${sku}`)
  @Get(':sku')
  async first(@Param('sku') _sku: string): Promise<string | undefined> {
    return this.locks.current()?.resource;
  }

  @Get(':sku')
  @LockHandler((context) => key`stock-v2:${context.getArgByIndex<{ params: { sku: string } }>(0).params.sku}`)
  @Version('2')
  async second(): Promise<string | undefined> {
    return this.locks.current()?.resource;
  }
}

describe('a locked handler that takes an upload', () => {
  const start = useApps();
  const upload = async (path: string): Promise<string> => {
    const configure = (app: INestApplication): unknown => app.useGlobalFilters(new LockExceptionFilter());
    const { url } = await start({ imports: [inMemory()], controllers: [PhotosController], configure });
    const body = new FormData();
    body.set('album', 'summer');
    body.set('photo', new Blob(['pixels']), 'beach.jpg');
    const response = await fetch(`${url}/photos/${path}`, { method: 'POST', body });
    return response.ok ? response.text() : String(response.status);
  };

  it('has its key from a field beside the file: @DistributedLock, and @LockHandler above FileInterceptor', async () => {
    expect(await upload('method')).toBe('beach.jpg (pixels) under album:summer');
    expect(await upload('handler')).toBe('beach.jpg (pixels) under album:summer');
  });

  it('with @LockHandler below FileInterceptor, the fields are not read yet: the tag refuses the key', async () => {
    expect(await upload('too-early')).toBe('400');
  });
});

describe('@DistributedLock and a timeout of the request', () => {
  const start = useApps();
  let shop: RunningApp;

  beforeEach(async () => {
    [timeIsUp, mayEnd, events] = [gate(), gate(), []];
    shop = await start({ imports: [inMemory()], controllers: [OrdersController] });
  });
  afterEach(() => [timeIsUp, mayEnd].forEach(({ open }) => open()));
  const status = async (who: string): Promise<number> => (await fetch(`${shop.url}/orders/${who}`)).status;
  const inspect = () => shop.app.get(RedisLockService).inspect('orders');

  it('while it waits, does not stop it: the method runs later, with no client. waitMs has to be the shorter', async () => {
    const lease = await shop.app.get(RedisLockService).acquire('orders');
    const first = status('first');
    await eventually(async () => expect((await inspect()).waiters).toHaveLength(1));
    timeIsUp.open();
    expect(await first).toBe(408);
    await lease.release();
    await eventually(() => expect(events).toEqual(['first began']));
  });
});

describe.each(PLATFORMS)('locked routes with a prefix and versions, on %s', (_, adapter) => {
  const start = useApps();

  it.each<[string, (app: INestApplication) => unknown, (version: string) => [string, Record<string, string>]]>([
    [
      'in the path',
      (app) => app.enableVersioning({ type: VersioningType.URI }),
      (version) => [`api/v${version}/stock/A1`, {}],
    ],
    [
      'in a header',
      (app) => app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version' }),
      (version) => ['api/stock/A1', { 'x-version': version }],
    ],
  ])('are found by the version %s, and lock by its own key', async (__, enable, requestOf) => {
    const configure = (app: INestApplication): unknown => enable(app.setGlobalPrefix('api'));
    const { url } = await start({
      imports: [inMemory()],
      controllers: [StockController],
      configure,
      adapter: adapter(),
    });
    const answers = await Promise.all(
      ['1', '2', '3'].map(async (version) => {
        const [path, headers] = requestOf(version);
        const response = await fetch(`${url}/${path}`, { headers });
        return response.ok ? response.text() : response.status;
      }),
    );
    expect(answers).toEqual(['stock-v1:A1', 'stock-v2:A1', 404]);
  });
});
