import type { Readable } from 'node:stream';
import { type CanActivate, Controller, type ExecutionContext, Inject, UseGuards } from '@nestjs/common';
import { type Metadata, type ServerDuplexStream, type ServerReadableStream, status } from '@grpc/grpc-js';
import { GrpcMethod, GrpcStreamCall, GrpcStreamMethod, Payload, RpcException } from '@nestjs/microservices';
import { DistributedLock, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { concat, count, map, NEVER, type Observable, of } from 'rxjs';

export interface Order {
  readonly id: string;
}

export interface Answer {
  readonly under: string | undefined;
  readonly count: number;
}

class Members implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToRpc().getData<Order>().id !== 'a stranger';
  }
}

const order = ({ id }: Order): string => `order:${id}`;
const orderOf = (context: ExecutionContext): string => order(context.switchToRpc().getData<Order>());
/** The messages of a stream come later than its lock. So the key is in the metadata of the call. */
const orderInMetadata = (context: ExecutionContext): string =>
  `order:${String(context.switchToRpc().getContext<Metadata>().get('order-id')[0])}`;

/** Each answer names the resource under whose lock it was made. */
@Controller()
export class GrpcOrders {
  @Inject() readonly locks!: RedisLockService;
  /** The number of calls that a handler has answered. */
  ran = 0;

  @DistributedLock(order)
  @GrpcMethod('Orders', 'Above')
  async above(_order: Order): Promise<Answer> {
    return this.#answer();
  }

  @GrpcMethod('Orders', 'Below')
  @UseGuards(Members)
  @DistributedLock(order)
  async below(@Payload() _order: Order): Promise<Answer> {
    return this.#answer();
  }

  @LockHandler(orderOf)
  @GrpcMethod('Orders', 'HandlerAbove')
  handlerAbove(): Answer {
    return this.#answer();
  }

  @GrpcMethod('Orders', 'HandlerBelow')
  @LockHandler(orderOf)
  handlerBelow(): Answer {
    return this.#answer();
  }

  @GrpcMethod('Orders', 'Pay')
  @LockHandler({ key: orderOf, waitMs: 0 })
  pay(): Answer {
    return this.#answer();
  }

  @GrpcMethod('Orders', 'Skipped')
  @DistributedLock({ key: order, onBusy: 'skip' })
  async skipped(_order: Order): Promise<Answer | undefined> {
    return this.#answer();
  }

  @GrpcMethod('Orders', 'Refused')
  @DistributedLock({
    key: order,
    waitMs: 0,
    onBusy: () => {
      throw new RpcException({ code: status.RESOURCE_EXHAUSTED, message: 'one at a time' });
    },
  })
  async refused(_order: Order): Promise<Answer> {
    return this.#answer();
  }

  @GrpcMethod('Orders', 'Watch')
  @LockHandler({ key: orderOf, waitMs: 2_000 })
  watch(): Observable<Answer> {
    return concat(of(this.#answer()), NEVER);
  }

  @GrpcStreamMethod('Orders', 'Upload')
  @LockHandler({ key: orderInMetadata, waitMs: 2_000 })
  upload(orders: Observable<Order>): Observable<Answer> {
    const answer = this.#answer();
    return orders.pipe(
      count(),
      map((sent) => ({ ...answer, count: sent })),
    );
  }

  @LockHandler({ key: orderInMetadata, waitMs: 2_000 })
  @GrpcStreamMethod('Orders', 'Talk')
  talk(orders: Observable<Order>): Observable<Answer> {
    // A message comes in an async context of its own, which knows no lease.
    const answer = this.#answer();
    return orders.pipe(map(({ id }) => ({ ...answer, count: Number(id) })));
  }

  // Nest passes the call alone, and leaves the answer to the method: it has to wait for the end of the stream.
  @GrpcStreamCall('Orders', 'Raw')
  @DistributedLock({ key: 'raw', waitMs: 0 })
  async raw(call: ServerDuplexStream<Order, Answer>): Promise<void> {
    for await (const { id } of messagesOf(call)) call.write({ ...this.#answer(), count: Number(id) });
    call.end();
  }

  @GrpcStreamCall('Orders', 'RawUpload')
  @DistributedLock({ key: 'raw', waitMs: 0 })
  async rawUpload(
    call: ServerReadableStream<Order, Answer>,
    callback: (error: null, answer: Answer) => void,
  ): Promise<void> {
    let sent = 0;
    for await (const _ of messagesOf(call)) sent++;
    callback(null, { ...this.#answer(), count: sent });
  }

  #answer(): Answer {
    this.ran++;
    return { under: this.locks.current()?.resource, count: 0 };
  }
}

/** A loop over the call itself would destroy it at the end, before it is answered. */
function messagesOf(call: Readable): AsyncIterable<Order> {
  return call.iterator({ destroyOnReturn: false });
}
