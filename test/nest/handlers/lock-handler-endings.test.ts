import { EventEmitter } from 'node:events';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  Param,
  type PipeTransform,
  Req,
  SetMetadata,
  UseInterceptors,
} from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import { Interval } from '@nestjs/schedule';
import { DistributedLock, InvalidLockOptionsError, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import {
  catchError,
  defer,
  map,
  type Observable,
  raceWith,
  repeat,
  retry,
  switchMap,
  takeUntil,
  throwError,
} from 'rxjs';
import { onDisconnect } from '../../../lib/nest/handlers/client-disconnect.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { inMemory, useApps } from '../nest-apps.js';
import { PLATFORMS } from '../platforms.js';
import { timeoutInterceptor } from '../timeout-interceptor.js';
import { useHandlerShop } from './handler-shop.js';

describe('@LockHandler on a method that nothing can run', () => {
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
      /Shop\.open is a property, and this decorator only works on methods\. Write a method instead: async open\(\) \{/,
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

  it('does not warn if Nest, or a known module, runs the method as a handler', async () => {
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

let timeIsUp = gate();
let mayEnd = gate();
let mayPass = gate();
let events: string[] = [];

const TimeoutInterceptor = timeoutInterceptor(() => timeIsUp.opened);

@Injectable()
class RetryInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry(2));
  }
}

/** Retries after an error, an unwanted value, or an end without a value. */
class BeginsAnew implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { how } = context.switchToHttp().getRequest<{ params: { how: string } }>().params;
    if (how === 'retry') return next.handle().pipe(retry(1));
    if (how === 'catchError') return next.handle().pipe(catchError(() => next.handle()));
    if (how === 'repeat') return next.handle().pipe(repeat(2));
    const wanted = (value: unknown): unknown => {
      if (value === 'first') throw new Error('not wanted');
      return value;
    };
    return next.handle().pipe(map(wanted), retry(1));
  }
}

/** Ends the first attempt before the handler has ended. */
class EndsTheFirst implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<{ params: { how: string }; attempts?: number }>();
    request.attempts = (request.attempts ?? 0) + 1;
    const { how } = request.params;
    if (request.attempts > 1 || how === 'value') return next.handle();
    const timeout = defer(() => timeIsUp.opened);
    if (how === 'repeat') return next.handle().pipe(takeUntil(timeout));
    return next.handle().pipe(raceWith(timeout.pipe(switchMap(() => throwError(() => new Error('timeout'))))));
  }
}

@Injectable()
class SlowPipe implements PipeTransform {
  async transform(id: string): Promise<string> {
    events.push('pipe began');
    await mayPass.opened;
    events.push('pipe ended');
    return id;
  }
}

@Controller('orders')
class OrdersController {
  @Inject() readonly locks!: RedisLockService;
  #attempts = 0;

  @Get('outside/:who')
  @LockHandler({ key: 'orders', waitMs: Infinity })
  @UseInterceptors(TimeoutInterceptor)
  async outside(@Param('who') who: string): Promise<string> {
    return this.#work(who);
  }

  @Get('inside/:who')
  @UseInterceptors(TimeoutInterceptor)
  @LockHandler({ key: 'orders', waitMs: Infinity })
  async inside(@Param('who') who: string): Promise<string> {
    return this.#work(who);
  }

  @Get('piped/:who')
  @LockHandler({ key: 'orders', waitMs: Infinity })
  @UseInterceptors(TimeoutInterceptor)
  async piped(@Param('who', SlowPipe) who: string): Promise<string> {
    return this.#work(who);
  }

  @Get('retried')
  @UseInterceptors(RetryInterceptor)
  @LockHandler('orders')
  @DistributedLock('orders')
  async retried(): Promise<string> {
    return this.#thirdTime();
  }

  async #thirdTime(): Promise<string> {
    if (++this.#attempts < 3) throw new Error('not yet');
    return `${this.#attempts} attempts under ${this.locks.current()?.resource}`;
  }

  @UseInterceptors(EndsTheFirst)
  @LockHandler('orders')
  @UseInterceptors(BeginsAnew)
  @Get('anew/:how')
  async anew(@Req() { attempts }: { attempts: number }): Promise<string> {
    return this.#work(attempts === 1 ? 'first' : 'second');
  }

  @UseInterceptors(EndsTheFirst)
  @LockHandler('orders')
  @LockHandler('stock')
  @UseInterceptors(BeginsAnew)
  @Get('both-anew/:how')
  async bothAnew(@Req() { attempts }: { attempts: number }): Promise<string> {
    return this.#work(attempts === 1 ? 'first' : 'second');
  }

  async #work(who: string): Promise<string> {
    const signal = this.locks.current()?.signal;
    events.push(`${who} began`);
    await mayEnd.opened;
    events.push(`${who} ended${signal?.aborted === false ? '' : ' without the lock'}`);
    return who;
  }
}

describe.each(PLATFORMS)('@LockHandler and interceptors that give up before the handler does, on %s', (_, adapter) => {
  beforeEach(() => {
    [timeIsUp, mayEnd, mayPass, events] = [gate(), gate(), gate(), []];
  });
  const shop = useHandlerShop('orders', adapter, { controllers: [OrdersController] });
  afterEach(() => [timeIsUp, mayEnd, mayPass].forEach(({ open }) => open()));

  const status = async (path: string): Promise<number> => (await fetch(`${shop().url}/orders/${path}`)).status;
  const holders = (): Promise<number> => shop().holders();
  const waiters = (): Promise<number> => shop().waiters();

  it.each(['outside', 'inside'])(
    'a timeout %s of the lock is answered at once, and the lock is held until the handler has ended',
    async (where) => {
      const first = status(`${where}/first`);
      await eventually(() => expect(events).toEqual(['first began']));
      timeIsUp.open();
      expect(await first).toBe(408);
      expect(await holders()).toBe(1);

      timeIsUp = gate();
      const second = status(`${where}/second`);
      await eventually(async () => expect(await waiters()).toBe(1));
      expect(events).toEqual(['first began']);

      mayEnd.open();
      expect(await second).toBe(200);
      expect(events).toEqual(['first began', 'first ended', 'second began', 'second ended']);
      await eventually(async () => expect(await holders()).toBe(0));
      expect(shop().log.at('error')).toEqual([]);
    },
  );

  it('a handler that had not begun when the request was given up does not begin: the lock is free', async () => {
    const first = status('piped/first');
    await eventually(() => expect(events).toEqual(['pipe began']));
    timeIsUp.open();
    expect(await first).toBe(408);
    await eventually(async () => expect(await holders()).toBe(0));

    timeIsUp = gate();
    const second = status('outside/second');
    await eventually(() => expect(events).toEqual(['pipe began', 'second began']));
    mayPass.open();
    await eventually(() => expect(events).toContain('pipe ended'));
    mayEnd.open();
    expect(await second).toBe(200);
    expect(events).toEqual(['pipe began', 'second began', 'pipe ended', 'second ended']);
    expect(shop().log.at('error')).toEqual([]);
  });

  it.each(
    ['anew', 'both-anew'].flatMap((path) => ['retry', 'catchError', 'repeat', 'value'].map((how) => [path, how])),
  )(
    'an attempt that is begun anew from within the end of the first one acquires the lock anew: %s, %s',
    async (path, how) => {
      const acquired: string[] = [];
      shop().locks.observe((event) => event.type === 'acquired' && acquired.push(event.resource));
      const answer = status(`${path}/${how}`);
      await eventually(() => expect(events).toEqual(['first began']));
      timeIsUp.open();
      if (how !== 'value') await eventually(async () => expect(await waiters()).toBe(1));
      mayEnd.open();
      expect(await answer).toBe(200);
      expect(events).toEqual(['first began', 'first ended', 'second began', 'second ended']);
      const once = path === 'anew' ? ['orders'] : ['stock', 'orders'];
      expect(acquired.toSorted()).toEqual([...once, ...once].toSorted());
      await eventually(async () => expect(await holders()).toBe(0));
      expect(shop().log.at('error')).toEqual([]);
    },
  );
});

/** A response, a socket or a WebSocket. */
class Wire extends EventEmitter {
  destroyed?: boolean;
  readyState?: number | string;
}

const graphql = (...args: unknown[]): ExecutionContext =>
  ({ getType: () => 'graphql', getArgs: () => args }) as unknown as ExecutionContext;
const ofField = (context: unknown): ExecutionContext => graphql({}, {}, context, {});

const places: [string, (wire: Wire) => unknown][] = [
  ['the request alone, on Express: the context that Nest makes for Apollo', (wire) => ({ req: { res: wire } })],
  ['request and response', (wire) => ({ req: { socket: new Wire() }, res: wire })],
  ['a request of Fastify alone', (wire) => ({ req: { raw: { socket: wire } } })],
  ['request and reply of Fastify: Mercurius', (wire) => ({ app: {}, req: {}, reply: { raw: wire, request: {} } })],
  ['a WebSocket of Mercurius', (wire) => ({ pubsub: {}, reply: { request: { raw: { socket: wire } } } })],
  ['the context of graphql-ws', (wire) => ({ extra: { socket: wire, request: { socket: new Wire() } } })],
  ['that context where Nest puts it', (wire) => ({ req: { extra: { socket: wire } } })],
  ['a request under its long name', (wire) => ({ request: { socket: wire } })],
];

describe('the client of a GraphQL request', () => {
  it.each(places)('is found by %s', (_, contextOf) => {
    const wire = new Wire();
    let left = 0;
    const stop = onDisconnect(ofField(contextOf(wire)), () => left++);
    onDisconnect(ofField(contextOf(wire)), () => left++);
    stop();
    expect(left).toBe(0);
    wire.emit('close');
    expect(left).toBe(1);
  });

  it('is found in the resolver of a reference, which has no arguments', () => {
    const wire = new Wire();
    let left = 0;
    onDisconnect(graphql({ __typename: 'Order' }, { res: wire }, {}), () => left++);
    wire.emit('close');
    expect(left).toBe(1);
  });

  it.each<[string, Partial<Wire>]>([
    ['a destroyed response', { destroyed: true }],
    ['a closing WebSocket', { readyState: 2 }],
    ['a closed one', { readyState: 3 }],
  ])('has left before: %s', (_, state) => {
    let left = 0;
    onDisconnect(ofField({ res: Object.assign(new Wire(), state) }), () => left++)();
    expect(left).toBe(1);
  });

  it.each<[string, Partial<Wire>]>([
    ['an open WebSocket', { readyState: 1 }],
    ['a socket, whose state is a word', { readyState: 'open' }],
  ])('is still there: %s', (_, state) => {
    let left = 0;
    onDisconnect(ofField({ res: Object.assign(new Wire(), state) }), () => left++)();
    expect(left).toBe(0);
  });

  it('has one listener, however many fields of its document wait', () => {
    const wire = new Wire();
    const stops = Array.from({ length: 50 }, () => onDisconnect(ofField({ res: wire }), () => {}));
    expect(wire.listenerCount('close')).toBe(1);
    stops.forEach((stop) => stop());
    onDisconnect(ofField({ res: wire }), () => {});
    expect(wire.listenerCount('close')).toBe(1);
  });

  const throwing = (): never => {
    throw new Error('not for you');
  };
  it.each<[string, unknown]>([
    ['none', undefined],
    ['null', null],
    ['text', 'user:7'],
    ['an empty one', {}],
    ['one of the application', { user: { id: 7 }, loaders: new Map() }],
    ['one whose getters throw', Object.defineProperty({}, 'req', { get: throwing })],
    ['a proxy that throws', new Proxy({}, { get: throwing })],
    ['a proxy that has everything', new Proxy({}, { get: (_, name) => ({ [name]: name }) })],
    ['a connection that throws', { res: { once: throwing } }],
    ['requests of another kind', { req: 'GET /', res: 7, reply: null, extra: [] }],
    ['no emitter', { res: { once: 'more' }, req: { socket: {} } }],
  ])('is not found by a foreign context, and nothing breaks: %s', (_, context) => {
    let left = 0;
    onDisconnect(ofField(context), () => left++)();
    onDisconnect(graphql(context), () => left++)();
    expect(left).toBe(0);
  });
});
