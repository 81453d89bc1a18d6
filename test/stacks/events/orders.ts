import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { DistributedLock } from 'nestjs-redis-lock';

export interface OrderPaid {
  readonly orderId: string;
}

@Injectable()
export class Invoices {
  readonly written: string[] = [];

  // Each instance emits its own events. The lock makes the instances take
  // turns.
  @OnEvent('order.paid', { async: true, promisify: true })
  @DistributedLock(({ orderId }: OrderPaid) => `invoice:${orderId}`)
  async write({ orderId }: OrderPaid): Promise<void> {
    if (!this.written.includes(orderId)) this.written.push(orderId);
  }
}
