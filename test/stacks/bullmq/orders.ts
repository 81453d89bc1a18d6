import { InjectQueue, Processor, WorkerHost } from '@nestjs/bullmq';
import { Controller, HttpCode, Param, Post } from '@nestjs/common';
import type { Job, Queue } from 'bullmq';
import { key, mergeSignals, RedisLockService } from 'nestjs-redis-lock';

@Controller('orders')
export class Orders {
  constructor(@InjectQueue('orders') private readonly queue: Queue) {}

  // Takes no lock: it only queues the work.
  @Post(':order/:item')
  @HttpCode(202)
  async place(
    @Param('order') order: string,
    @Param('item') item: string,
  ): Promise<void> {
    await this.queue.add('sell', { order, item }, { attempts: 3 });
  }
}

export abstract class Stock {
  /** Sells an item to the order, once. @returns true if the order has it */
  abstract sell(
    item: string,
    order: string,
    fencingToken: number,
    signal: AbortSignal,
  ): Promise<boolean>;
}

@Processor('orders', { concurrency: 5 })
export class Sales extends WorkerHost {
  constructor(
    private readonly locks: RedisLockService,
    private readonly stock: Stock,
  ) {
    super();
  }

  // BullMQ passes a signal to a method with three parameters.
  // worker.cancelJob() aborts it.
  async process(
    { data: { item, order } }: Job,
    _token?: string,
    cancel?: AbortSignal,
  ): Promise<boolean> {
    const options = { signal: cancel };
    return this.locks.using(key`stock:${item}`, options, async (lease) => {
      const stop = mergeSignals(lease.signal, cancel);
      const { fencingToken } = lease;
      try {
        return await this.stock.sell(
          item,
          order,
          fencingToken,
          stop.signal,
        );
      } finally {
        stop.dispose();
      }
    });
  }
}
