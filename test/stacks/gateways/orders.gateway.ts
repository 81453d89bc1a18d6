import { type CanActivate, type ExecutionContext, Inject, Injectable, UseFilters, UseGuards } from '@nestjs/common';
import { MessageBody, type OnGatewayDisconnect, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { DistributedLock, LockExceptionFilter, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { map, Observable, take, timer } from 'rxjs';

@Injectable()
class Members implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToWs().getData<unknown>() !== 'a stranger';
  }
}

const order = (id: string): string => `order:${id}`;
const orderOf = (context: ExecutionContext): string => order(context.switchToWs().getData<string>());

/** Each answer names the resource under whose lock it was made. */
@WebSocketGateway()
export class OrdersGateway implements OnGatewayDisconnect {
  @Inject() readonly locks!: RedisLockService;
  /** The number of messages answered. */
  ran = 0;
  working = 0;
  /** The number of disconnected clients. */
  left = 0;
  finish = (): void => {};

  handleDisconnect(): void {
    this.left++;
  }

  @DistributedLock(order)
  @SubscribeMessage('method.above')
  async methodAbove(@MessageBody() _id: string) {
    return this.#done();
  }

  @SubscribeMessage('method.below')
  @DistributedLock(order)
  async methodBelow(@MessageBody() _id: string) {
    return this.#done();
  }

  // Without decorators, Nest passes the client and the data.
  @DistributedLock((_client: unknown, id: string) => order(id))
  @SubscribeMessage('method.bare')
  async bare(_client: unknown, _id: string) {
    return this.#done();
  }

  @LockHandler(orderOf)
  @SubscribeMessage('handler.above')
  handlerAbove() {
    return this.#done();
  }

  @SubscribeMessage('handler.below')
  @LockHandler(orderOf)
  handlerBelow() {
    return this.#done();
  }

  @DistributedLock(order)
  @UseGuards(Members)
  @SubscribeMessage('guarded.above')
  async guardedAbove(@MessageBody() _id: string) {
    return this.#done();
  }

  @SubscribeMessage('guarded.below')
  @UseGuards(Members)
  @LockHandler(orderOf)
  async guardedBelow() {
    return this.#done();
  }

  @SubscribeMessage('impatient.method')
  @DistributedLock({ key: order, waitMs: 0 })
  async impatientMethod(@MessageBody() _id: string) {
    return this.#done();
  }

  @SubscribeMessage('impatient.handler')
  @LockHandler({ key: orderOf, waitMs: 0 })
  impatientHandler() {
    return this.#done();
  }

  @SubscribeMessage('skipped')
  @LockHandler({ key: orderOf, onBusy: 'skip' })
  skipped() {
    return this.#done();
  }

  @SubscribeMessage('stream')
  @LockHandler('stream')
  stream(): Observable<unknown> {
    return timer(0, 5).pipe(
      take(3),
      map((count) => ({ event: 'part', data: [count, this.locks.current()?.resource] })),
    );
  }

  @SubscribeMessage('endless')
  @LockHandler('endless')
  endless(): Observable<unknown> {
    return new Observable((subscriber) => subscriber.next({ event: 'part', data: this.locks.current()?.resource }));
  }

  @SubscribeMessage('working')
  @LockHandler(orderOf)
  async work(): Promise<void> {
    this.working++;
    await new Promise<void>((resolve) => (this.finish = resolve));
  }

  /** An answer without `event` is an acknowledgement. */
  @SubscribeMessage('acknowledged')
  @LockHandler(orderOf)
  acknowledged() {
    return { under: this.#done().data };
  }

  #done() {
    this.ran++;
    return { event: 'done', data: this.locks.current()?.resource };
  }
}

@WebSocketGateway()
@UseFilters(new LockExceptionFilter())
export class AnsweringGateway extends OrdersGateway {}
