import {
  Controller,
  Get,
  Inject,
  Injectable,
  Param,
  Scope,
} from '@nestjs/common';
import {
  type ContextId,
  ContextIdFactory,
  type ContextIdResolver,
  type ContextIdStrategy,
  REQUEST,
} from '@nestjs/core';
import {
  DistributedLock,
  key,
  LockHandler,
  RedisLockService,
} from 'nestjs-redis-lock';
import { inMemory, useApps } from '../nest-apps.js';

/** Creates durable providers once per tenant. */
class PerTenant implements ContextIdStrategy {
  readonly #subTrees = new Map<string, ContextId>();

  attach(
    contextId: ContextId,
    request: { headers: { 'x-tenant'?: string } },
  ): ContextIdResolver {
    const tenant = request.headers['x-tenant'] ?? 'none';
    const subTree = this.#subTrees.get(tenant) ?? ContextIdFactory.create();
    this.#subTrees.set(tenant, subTree);
    return {
      resolve: ({ isTreeDurable }) => (isTreeDurable ? subTree : contextId),
      payload: { tenant },
    };
  }
}

@Injectable({ scope: Scope.REQUEST, durable: true })
class TenantOrders {
  constructor(
    @Inject(REQUEST) private readonly request: { tenant: string },
    private readonly locks: RedisLockService,
  ) {}

  // A function or a method, not an arrow function: it is called with the
  // provider as `this`.
  @DistributedLock({
    key(this: TenantOrders, orderId: string) {
      return key`${this.request.tenant}:order:${orderId}`;
    },
  })
  async pay(_orderId: string) {
    return this.locks.currentOrThrow().resource;
  }
}

const made: string[] = [];

/** Counts its instances, and reports the other calls that shared each. */
@Injectable({ scope: Scope.REQUEST, durable: true })
class TenantStock {
  inside = 0;
  most = 0;

  constructor(
    @Inject(REQUEST) readonly request: { tenant: string },
    readonly locks: RedisLockService,
  ) {
    made.push(request.tenant);
  }

  @DistributedLock({
    key(this: TenantStock) {
      return key`${this.request.tenant}:stock`;
    },
    waitMs: 30_000,
  })
  async move(
    work = (): Promise<void> => new Promise(setImmediate),
  ): Promise<string> {
    this.most = Math.max(this.most, ++this.inside);
    await work();
    this.inside--;
    return `${this.request.tenant} ${this.locks.currentOrThrow().resource} ${this.most}`;
  }
}

/** Opens when both tenants hold their lock at once. */
let arrived = 0;
let openDoor: () => void;
const door = new Promise<void>((resolve) => (openDoor = resolve));

@Controller()
class TenantController {
  constructor(
    private readonly orders: TenantOrders,
    private readonly stock: TenantStock,
    private readonly locks: RedisLockService,
  ) {}

  @Get('orders/:id')
  pay(@Param('id') id: string): Promise<string> {
    return this.orders.pay(id);
  }

  @Get('stock')
  move(): Promise<string> {
    return this.stock.move();
  }

  @Get('meet')
  async meet(): Promise<string> {
    return this.stock.move(() => {
      if (++arrived === 2) openDoor();
      return door;
    });
  }

  /**
   * Its interceptor is bound to a controller that is itself made once for
   * each tenant.
   */
  @Get('handler')
  @LockHandler(
    (context) =>
      key`handler:${context.getArgByIndex(0).headers['x-tenant']}`,
  )
  async handler(): Promise<string> {
    return `${this.stock.request.tenant} ${this.locks.currentOrThrow().resource}`;
  }
}

describe('locked methods of durable providers', () => {
  const start = useApps();
  const startTenants = async () => {
    made.length = 0;
    ContextIdFactory.apply(new PerTenant());
    const { url } = await start({
      imports: [inMemory()],
      providers: [TenantOrders, TenantStock],
      controllers: [TenantController],
    });
    return async (path: string, tenant: string): Promise<string> =>
      (
        await fetch(`${url}/${path}`, { headers: { 'x-tenant': tenant } })
      ).text();
  };

  it('lock by the tenant of the provider, which the key function reads from `this`', async () => {
    const get = await startTenants();
    expect(await get('orders/7', 'ann')).toBe('ann:order:7');
    expect(await get('orders/7', 'bob')).toBe('bob:order:7');
  });

  it('are made once for each tenant, and 60 requests that wait leave nothing with each other', async () => {
    const get = await startTenants();
    const tenants = Array.from(
      { length: 60 },
      (_, index) => ['ann', 'bob', 'eve'][index % 3]!,
    );
    const answers = await Promise.all(
      tenants.map((tenant) => get('stock', tenant)),
    );
    expect(answers).toEqual(
      tenants.map((tenant) => `${tenant} ${tenant}:stock 1`),
    );
    expect(made.toSorted()).toEqual(['ann', 'bob', 'eve']);
  });

  it('@LockHandler on a controller that is made for each tenant locks too', async () => {
    const get = await startTenants();
    expect(await get('handler', 'ann')).toBe('ann handler:ann');
    expect(await get('handler', 'bob')).toBe('bob handler:bob');
  });
});
