import {
  Body,
  type CanActivate,
  Controller,
  Delete,
  ForbiddenException,
  Get,
  Header,
  HttpCode,
  Injectable,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
  Query,
  SetMetadata,
  UseGuards,
  UsePipes,
} from '@nestjs/common';
import { ApiOperation, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { DistributedLock, LeaderOnly, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, PLATFORMS, useApps } from '../nest-apps.js';

@Injectable()
class Closed implements CanActivate {
  canActivate(): boolean {
    throw new ForbiddenException('closed');
  }
}

class Upper {
  transform(value: unknown): unknown {
    return typeof value === 'string' ? value.toUpperCase() : value;
  }
}

@Controller('orders')
class OrdersController {
  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock((id: number) => `order:${id}`)
  @Get('above/:id')
  @Header('X-Shop', 'above')
  @HttpCode(202)
  async above(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note, locked: this.locks.current()?.resource };
  }

  @Get('below/:id')
  @Header('X-Shop', 'below')
  @HttpCode(202)
  @DistributedLock((id: number) => `order:${id}`)
  async below(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note, locked: this.locks.current()?.resource };
  }

  @DistributedLock('x')
  @UseGuards(Closed)
  @Get('guarded-above')
  async guardedAbove(): Promise<void> {}

  @Get('guarded-below')
  @UseGuards(Closed)
  @DistributedLock('x')
  async guardedBelow(): Promise<void> {}

  @UsePipes(Upper)
  @DistributedLock((body: string) => `order:${body}`)
  @Post('piped-above')
  async pipedAbove(@Body('name') name: string): Promise<unknown> {
    return { name, locked: this.locks.current()?.resource };
  }

  @DistributedLock((body: string) => `order:${body}`)
  @Post('piped-below')
  @UsePipes(Upper)
  async pipedBelow(@Body('name') name: string): Promise<unknown> {
    return { name, locked: this.locks.current()?.resource };
  }

  @DistributedLock('x')
  @ApiOperation({ summary: 'documented above' })
  @Delete('missing')
  async missing(): Promise<void> {
    throw new NotFoundException('no such order');
  }

  @ApiOperation({ summary: 'documented below' })
  @DistributedLock('x')
  @Delete('also-missing')
  async alsoMissing(): Promise<void> {
    throw new NotFoundException('no such order');
  }
}

@Controller('handlers')
class HandlersController {
  @LockHandler('x')
  @ApiOperation({ summary: 'documented above' })
  @Get('above/:id')
  async above(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note };
  }

  @ApiOperation({ summary: 'documented below' })
  @Get('below/:id')
  @LockHandler('x')
  async below(@Param('id', ParseIntPipe) id: number, @Query('note') note: string): Promise<unknown> {
    return { id, note };
  }
}

describe.each(PLATFORMS)('@DistributedLock on the routes of %s', (_, adapter) => {
  const start = useApps();
  const startShop = () => start({ imports: [inMemory()], controllers: [OrdersController], adapter: adapter() });

  it.each(['above', 'below'])('%s @Get: route, status, header, parameters and their pipes work', async (where) => {
    const { url } = await startShop();
    const response = await fetch(`${url}/orders/${where}/7?note=hi`);
    expect(response.status).toBe(202);
    expect(response.headers.get('X-Shop')).toBe(where);
    expect(await response.json()).toEqual({ id: 7, note: 'hi', locked: 'order:7' });
    expect((await fetch(`${url}/orders/${where}/seven`)).status).toBe(400);
  });

  it.each(['above', 'below'])('%s @UsePipes: the key function sees what the pipe made', async (where) => {
    const { url } = await startShop();
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(`${url}/orders/piped-${where}`, { method: 'POST', headers, body: '{"name":"ann"}' });
    expect(await response.json()).toEqual({ name: 'ANN', locked: 'order:ANN' });
  });

  it('above and below a Swagger decorator: the document has it, and the parameters', async () => {
    const { app } = await startShop();
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    expect(paths['/orders/missing']?.delete?.summary).toBe('documented above');
    expect(paths['/orders/also-missing']?.delete?.summary).toBe('documented below');
    for (const where of ['above', 'below']) {
      const parameters = paths[`/orders/${where}/{id}`]?.get?.parameters;
      expect(parameters).toMatchObject([{ name: 'id', in: 'path', schema: { type: 'number' } }, { name: 'note' }]);
    }
  });

  it.each(['above', 'below'])('@LockHandler %s a Swagger decorator: the same', async (where) => {
    const { app } = await start({ imports: [inMemory()], controllers: [HandlersController], adapter: adapter() });
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    const route = paths[`/handlers/${where}/{id}`]?.get;
    expect(route?.summary).toBe(`documented ${where}`);
    expect(route?.parameters).toMatchObject([{ name: 'id', schema: { type: 'number' } }, { name: 'note' }]);
  });
});

describe('what others read from a decorated method', () => {
  const mark = Symbol('mark');

  class Reports {
    @SetMetadata('roles', ['admin'])
    @SetMetadata(mark, 1)
    @DistributedLock('x')
    @SetMetadata('summary', 'nightly')
    async nightly(_day: string, _dry: boolean = false): Promise<void> {}
  }

  it('is all there: metadata of every key from above and below, name, length, and parameter types', () => {
    const { nightly } = Reports.prototype;
    expect(Reflect.getMetadata('roles', nightly)).toEqual(['admin']);
    expect(Reflect.getMetadata(mark, nightly)).toBe(1);
    expect(Reflect.getMetadata('summary', nightly)).toBe('nightly');
    expect([nightly.name, nightly.length]).toEqual(['nightly', 1]);
    expect(Reflect.getMetadata('design:paramtypes', Reports.prototype, 'nightly')).toEqual([String, Boolean]);
  });

  it.each([
    ['@DistributedLock', DistributedLock('x')],
    ['@LockHandler', LockHandler('x')],
    ['@LeaderOnly', LeaderOnly('x')],
  ])('%s shows an async method as one: by that, some tracers wait for its end', (_, decorate) => {
    const method = { value: async (): Promise<void> => {} };
    (decorate as MethodDecorator)(class {}.prototype, 'nightly', method);
    expect(method.value.constructor.name).toBe('AsyncFunction');
  });

  it('@LockHandler shows a method that is not async as what it is', () => {
    const [generator, sync] = [{ value: async function* (): AsyncGenerator {} }, { value: (): void => {} }];
    LockHandler('x')(class {}.prototype, 'nightly', generator);
    LockHandler('x')(class {}.prototype, 'nightly', sync);
    expect(generator.value.constructor.name).toBe('AsyncGeneratorFunction');
    expect(sync.value.constructor.name).toBe('Function');
  });
});
