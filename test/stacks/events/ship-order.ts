import {
  AggregateRoot,
  CommandHandler,
  EventPublisher,
  type ICommandHandler,
} from '@nestjs/cqrs';
import { DistributedLock, key } from 'nestjs-redis-lock';

export class ShipOrder {
  constructor(readonly orderId: string) {}
}

export class OrderShipped {
  constructor(readonly orderId: string) {}
}

export class Order extends AggregateRoot {
  parcels = 0;

  constructor(readonly id: string) {
    super();
  }

  ship(): void {
    this.parcels++;
    this.apply(new OrderShipped(this.id));
  }
}

export abstract class Orders {
  abstract load(id: string): Promise<Order>;
  abstract save(order: Order): Promise<void>;
}

@CommandHandler(ShipOrder)
export class ShipOrderHandler implements ICommandHandler<ShipOrder> {
  constructor(
    private readonly orders: Orders,
    private readonly publisher: EventPublisher,
  ) {}

  async execute({ orderId }: ShipOrder): Promise<void> {
    const order = await this.ship(orderId);
    // After the release: event handlers may lock the same order.
    order.commit();
  }

  // One command at a time for each order, from loading it to saving it.
  @DistributedLock((orderId: string) => key`order:${orderId}`)
  async ship(orderId: string): Promise<Order> {
    const order = this.publisher.mergeObjectContext(
      await this.orders.load(orderId),
    );
    order.ship();
    await this.orders.save(order);
    return order;
  }
}
