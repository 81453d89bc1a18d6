// Handlers of commands, queries and events for the tests, and a saga.
import { Inject, Injectable, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import {
  CommandHandler,
  EventBus,
  EventsHandler,
  type ICommand,
  type IEvent,
  ofType,
  QueryHandler,
  Saga,
} from '@nestjs/cqrs';
import { DistributedLock, key, LockHandler, ReadLock, RedisLockService } from 'nestjs-redis-lock';
import { map, type Observable } from 'rxjs';
import { OrderShipped } from './ship-order.js';

export const seen: unknown[][] = [];

export class CountOrder {
  constructor(readonly orderId: string) {}
}

@QueryHandler(CountOrder)
export class CountOrderHandler {
  constructor(private readonly locks: RedisLockService) {}

  @ReadLock(({ orderId }: CountOrder) => key`order:${orderId}`)
  async execute(_query: CountOrder): Promise<unknown> {
    const { mode, resource } = this.locks.currentOrThrow();
    return [mode, resource];
  }
}

export class CancelOrder {
  constructor(readonly orderId: string) {}
}

/** Nest makes an object for each command. */
@CommandHandler(CancelOrder, { scope: Scope.REQUEST })
export class CancelOrderHandler {
  constructor(
    @Inject(REQUEST) private readonly context: object,
    private readonly locks: RedisLockService,
  ) {}

  @DistributedLock(({ orderId }: CancelOrder) => key`order:${orderId}`)
  async execute(_command: CancelOrder): Promise<unknown> {
    return [this.locks.currentOrThrow().resource, this.context.constructor.name];
  }
}

@EventsHandler(OrderShipped)
export class Bookkeeping {
  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock(({ orderId }: OrderShipped) => key`order:${orderId}`)
  async handle({ orderId }: OrderShipped): Promise<void> {
    seen.push(['booked', orderId, this.locks.current()?.resource]);
  }
}

@EventsHandler(OrderShipped)
export class Impatient {
  @DistributedLock({ key: 'mail', waitMs: 0 })
  async handle(): Promise<void> {}
}

export class SendMail {
  constructor(readonly orderId: string) {}
}

@CommandHandler(SendMail)
export class SendMailHandler {
  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock(({ orderId }: SendMail) => key`mail:${orderId}`)
  async execute({ orderId }: SendMail): Promise<void> {
    seen.push(['mailed', orderId, this.locks.current()?.resource]);
  }
}

@Injectable()
export class Mails {
  @Saga()
  afterShipping = (events: Observable<IEvent>): Observable<ICommand> =>
    events.pipe(
      ofType(OrderShipped),
      map(({ orderId }) => new SendMail(orderId)),
    );
}

/** Publishes while it holds what a handler of its event locks. */
@Injectable()
export class Hasty {
  constructor(private readonly bus: EventBus) {}

  @DistributedLock((orderId: string) => key`order:${orderId}`)
  async ship(orderId: string): Promise<void> {
    await this.bus.publish(new OrderShipped(orderId));
  }
}

class Locked {
  @LockHandler('x')
  async execute(): Promise<void> {}

  async handle(): Promise<void> {}
}

export class LockedCommandHandler extends Locked {}
CommandHandler(CancelOrder)(LockedCommandHandler);
export class LockedQueryHandler extends Locked {}
QueryHandler(CountOrder)(LockedQueryHandler);
export class LockedEventsHandler extends Locked {}
EventsHandler(OrderShipped)(LockedEventsHandler);
