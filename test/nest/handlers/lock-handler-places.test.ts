import { Controller, Get, Injectable, SetMetadata } from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import { Interval } from '@nestjs/schedule';
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
      /Shop\.open is a property, and this decorator is for methods\. .* Write a method: async open\(\) \{/,
    ],
    ['an accessor', () => lock(class Shop {}.prototype, 'open', { get: () => 1 }), /Shop\.open is not a method/],
  ])('is an error when the class is defined: on %s', (_, decorate, message) => {
    expect(decorate).toThrow(message);
    expect(decorate).toThrow(expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS' }));
  });
});

/** The metadata that decorators of other packages leave on a method. */
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
}

@Controller()
class LostController {
  @Get()
  @LockHandler('x')
  async route(): Promise<void> {}
}

/** Called without interceptors. */
@Injectable()
class Scheduled {
  @Interval(60_000)
  @LockHandler('x')
  async tick(): Promise<void> {}
}

/** So are the jobs of @nestjs/bullmq and @nestjs/bull, and the handlers of @nestjs/cqrs. */
@SetMetadata('bullmq:processor_metadata', {})
@SetMetadata('bullmq:worker_metadata', {})
class Mailer {
  @LockHandler('x')
  async process(): Promise<void> {}
}

@SetMetadata('websockets:is_gateway', true)
class Gateway {
  @LockHandler('x')
  async help(): Promise<void> {}
}

@Injectable()
class OnCommand {
  @SetMetadata('discord:slash-command', {})
  @LockHandler('x')
  async command(): Promise<void> {}
}

@SetMetadata('discord:listener', {})
class OfOtherPackage {
  @LockHandler('x')
  async listen(): Promise<void> {}
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

  it.each<[new () => object, string]>([
    [PlainProvider, 'PlainProvider.send'],
    [Mailer, 'Mailer.process'],
    [Gateway, 'Gateway.help'],
  ])('refuses a method of a provider that no decorator makes a handler: %p', async (provider, where) => {
    const error = await rejection(start({ imports: [inMemory()], providers: [provider] }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toBe(
      `${where} has @LockHandler, which would never run: no decorator makes the method a route or a message pattern of ` +
        `a controller, a message of a gateway, a query or a mutation, and Nest runs interceptors only for these. Add ` +
        `such a decorator, or use @DistributedLock, which locks every call of the method.`,
    );
  });

  it('refuses a method that the scheduler calls, and says what to use', async () => {
    const error = await rejection(start({ imports: [inMemory()], providers: [Scheduled] }));
    expect(error.message).toBe(
      'Scheduled.tick has @LockHandler, which would never run: @nestjs/schedule calls the method, and no request does. ' +
        'To run each tick on one instance, use @SingletonInterval of nestjs-redis-lock/schedule in place of both.',
    );
  });

  it('refuses a route of a class that is only a provider', async () => {
    const error = await rejection(start({ imports: [inMemory()], providers: [LostController] }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toMatch(/^LostController\.route has @LockHandler.* Add the class to the controllers/);
  });

  it.each([
    ['the method', OnCommand],
    ['the class', OfOtherPackage],
  ])('warns where a decorator of another package on %s may make a handler of it', async (_, provider) => {
    const { log } = await start({ imports: [inMemory()], providers: [provider] });
    expect(log.at('warn')).toEqual([expect.stringContaining('has @LockHandler, but Nest is not known to run')]);
    expect(log.at('warn')[0]).toContain('@DistributedLock');
  });

  it.each([[{}]])('refuses a field resolver of GraphQL that no interceptor runs for: %p', async (options) => {
    const error = await rejection(start({ imports: [inMemory()], providers: [AuthorResolver, graphql(options)] }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toMatch(/^AuthorResolver\.books .*fieldResolverEnhancers: \['interceptors'\]/);
  });

  it("takes a field resolver with fieldResolverEnhancers: ['interceptors']", async () => {
    const options = { fieldResolverEnhancers: ['interceptors'] };
    const { log } = await start({ imports: [inMemory()], providers: [AuthorResolver, graphql(options)] });
    expect(log.at('warn')).toEqual([]);
  });
});
