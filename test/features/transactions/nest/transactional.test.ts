import { Controller, Get, Inject } from '@nestjs/common';
import { DistributedLock, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

let events: string[] = [];

async function transaction(work: () => Promise<unknown>): Promise<unknown> {
  events.push('begin');
  const result = await work();
  // The database replies later, so work that doesn't wait for it comes first.
  await new Promise(setImmediate);
  events.push('commit');
  return result;
}

type Method = (...args: unknown[]) => Promise<unknown>;

/** As `typeorm-transactional` does it: another function with the name and the metadata of the method. */
const TypeormTransactional = (): MethodDecorator => (_target, _name, descriptor: PropertyDescriptor) => {
  const original = descriptor.value as Method;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return transaction(() => original.apply(this, args));
  };
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), descriptor.value);
  }
  Object.defineProperty(descriptor.value, 'name', { value: original.name, writable: false });
};

/** As `@nestjs-cls/transactional` does it: a proxy, and the metadata once more. */
const ClsTransactional = (): MethodDecorator => (_target, _name, descriptor: PropertyDescriptor) => {
  const original = descriptor.value as Method;
  descriptor.value = new Proxy(original, {
    apply: (_, self, args: unknown[]) => transaction(() => original.apply(self, args)),
  });
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), descriptor.value);
  }
};

function controllerWith(Transactional: () => MethodDecorator) {
  @Controller()
  class OrdersController {
    @Inject() readonly locks!: RedisLockService;

    @Get('lock-above')
    @DistributedLock('orders')
    @Transactional()
    async lockAbove(): Promise<void> {}

    @Get('lock-below')
    @Transactional()
    @DistributedLock('orders')
    async lockBelow(): Promise<void> {}

    @Get('handler-above')
    @LockHandler('orders')
    @Transactional()
    async handlerAbove(): Promise<void> {}

    @Get('handler-below')
    @Transactional()
    @LockHandler('orders')
    async handlerBelow(): Promise<void> {}

    @Get('both')
    @LockHandler('orders')
    @Transactional()
    @DistributedLock('orders')
    async both(): Promise<void> {}
  }
  return OrdersController;
}

describe.each([
  ['typeorm-transactional', TypeormTransactional],
  ['@nestjs-cls/transactional', ClsTransactional],
])('a handler with a lock and a @Transactional() as of %s', (_, Transactional) => {
  const start = useApps();

  it.each([
    ['lock-above', ['acquired', 'begin', 'commit', 'released']],
    // These copies have no code of the packages, so they are not recognized.
    ['lock-below', ['begin', 'acquired', 'released', 'commit']],
    ['handler-above', ['acquired', 'begin', 'commit', 'released']],
    ['handler-below', ['acquired', 'begin', 'commit', 'released']],
    ['both', ['acquired', 'begin', 'commit', 'released']],
  ])('commits and releases in this order: %s', async (path, order) => {
    events = [];
    const { app, url } = await start({ imports: [inMemory()], controllers: [controllerWith(Transactional)] });
    app.get(RedisLockService).observe(({ type }) => {
      if (type === 'acquired' || type === 'released') events.push(type);
    });
    expect((await fetch(`${url}/${path}`)).status).toBe(200);
    expect(events).toEqual(order);
  });
});
