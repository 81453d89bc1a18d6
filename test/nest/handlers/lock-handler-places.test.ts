import { Controller, Get, Injectable, Scope, SetMetadata } from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import { DistributedLock, InvalidLockOptionsError, LockHandler } from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

describe('@LockHandler where nothing can ever run it', () => {
  const lock = LockHandler('x') as (...target: unknown[]) => void;

  it.each([
    [
      'a static method',
      () => lock(class Shop {}, 'open', { value: () => {} }),
      /static method of Shop .*Make it an instance method/,
    ],
    ['a class', () => lock(class Shop {}), /Shop is a class/],
    [
      'a property',
      () => lock(class Shop {}.prototype, 'open'),
      /Shop\.open is not a method, .*Put the decorator on a method/,
    ],
    ['an accessor', () => lock(class Shop {}.prototype, 'open', { get: () => 1 }), /Shop\.open is not a method/],
  ])('is an error when the class is defined: on %s', (_, decorate, message) => {
    expect(decorate).toThrow(message);
    expect(decorate).toThrow(expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS' }));
  });
});

/** What the decorators of other packages leave on a method. */
const SubscribeMessage = () => SetMetadata('websockets:message_mapping', true);
const Mutation = () => SetMetadata('graphql:resolver_type', 'Mutation');
const ResolveField = () => SetMetadata('graphql:resolve_property', true);
const RabbitSubscribe = () => SetMetadata(Symbol('RABBIT_HANDLER') as unknown as string, {});

@Controller()
class KnownController {
  @Get('above')
  @LockHandler('x')
  async above(): Promise<void> {}

  @LockHandler('x')
  @Get('below')
  async below(): Promise<void> {}

  @EventPattern('sold')
  @LockHandler('x')
  async event(_sku: string): Promise<void> {}
}

@Injectable()
class KnownProvider {
  @SubscribeMessage()
  @LockHandler('x')
  async message(): Promise<void> {}

  @Mutation()
  @LockHandler('x')
  async mutation(): Promise<void> {}

  @LockHandler('x')
  @RabbitSubscribe()
  async rabbit(): Promise<void> {}

  @DistributedLock('x')
  async locked(): Promise<void> {}
}

@Injectable()
class PlainProvider {
  @LockHandler('x')
  async send(): Promise<void> {}

  @Get('not-a-controller')
  @LockHandler('x')
  async route(): Promise<void> {}
}

@Injectable()
class Inherits extends PlainProvider {
  override async route(): Promise<void> {}
}

@Injectable({ scope: Scope.REQUEST })
class RequestScoped {
  @LockHandler('x')
  async send(): Promise<void> {}
}

@Controller()
class HelpfulController {
  @LockHandler('x')
  async help(): Promise<void> {}
}

@Injectable()
class Billing {
  @LockHandler({ key: 'x', lockService: 'billing' })
  async send(): Promise<void> {}
}

@Injectable()
class AuthorResolver {
  @ResolveField()
  @LockHandler('x')
  async books(): Promise<void> {}
}

describe('@LockHandler, when the application starts', () => {
  const start = useApps();
  const graphql = (options: unknown) => ({ provide: 'GqlModuleOptions', useValue: options });

  it('says nothing where Nest, or a module that is known, runs the method as a handler', async () => {
    const { log } = await start({
      imports: [inMemory()],
      controllers: [KnownController],
      providers: [KnownProvider],
    });
    expect(log.at('warn')).toEqual([]);
  });

  it.each([
    [PlainProvider, ['PlainProvider.send', 'PlainProvider.route']],
    [Inherits, ['Inherits.send']],
    [RequestScoped, ['RequestScoped.send']],
  ])('warns of a method of a provider that no handler’s metadata are on: %p', async (provider, methods) => {
    const { log } = await start({ imports: [inMemory()], providers: [provider] });
    const warned = log.at('warn').map((line) => line.split(' has @LockHandler')[0]);
    expect(warned).toEqual(methods);
    expect(log.at('warn')[0]).toContain('@DistributedLock');
  });

  it('warns of a method of a controller that is no route', async () => {
    const { log } = await start({ imports: [inMemory()], controllers: [HelpfulController] });
    expect(log.at('warn').join()).toMatch(/^HelpfulController\.help has @LockHandler/);
  });

  it('warns once, by the lock service that the method names, wherever the provider is listed', async () => {
    class Elsewhere {}
    const { log } = await start({
      imports: [inMemory(), inMemory({ name: 'billing' }), { module: Elsewhere, providers: [Billing] }],
      providers: [Billing],
    });
    expect(log.at('warn')).toHaveLength(1);
    expect(log.at('warn')[0]).toMatch(/^Billing\.send has @LockHandler/);
  });

  it.each([[{}], [{ fieldResolverEnhancers: ['guards'] }]])(
    'refuses a field resolver of GraphQL that no interceptor runs for: %p',
    async (options) => {
      const error = await rejection(start({ imports: [inMemory()], providers: [AuthorResolver, graphql(options)] }));
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toMatch(/^AuthorResolver\.books .*fieldResolverEnhancers: \['interceptors'\]/);
    },
  );

  it("takes a field resolver with fieldResolverEnhancers: ['interceptors']", async () => {
    const options = { fieldResolverEnhancers: ['interceptors'] };
    const { log } = await start({ imports: [inMemory()], providers: [AuthorResolver, graphql(options)] });
    expect(log.at('warn')).toEqual([]);
  });
});
