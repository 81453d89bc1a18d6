import { UseFilters } from '@nestjs/common';
import {
  MessageBody,
  SubscribeMessage,
  WebSocketGateway,
} from '@nestjs/websockets';
import {
  DistributedLock,
  key,
  LockExceptionFilter,
  LockHandler,
} from 'nestjs-redis-lock';
import { map, type Observable, range } from 'rxjs';

@WebSocketGateway()
@UseFilters(LockExceptionFilter) // Nest runs no global filter for a gateway
export class PaymentsGateway {
  @SubscribeMessage('pay')
  @DistributedLock({
    key: (orderId: string) => key`order:${orderId}`,
    waitMs: 1_000,
  })
  async pay(@MessageBody('orderId') orderId: string) {
    return { event: 'paid', data: { orderId } };
  }

  // Held until the last row is sent, or the client has left.
  @SubscribeMessage('export')
  @LockHandler(
    (context) => key`export:${context.switchToWs().getData().userId}`,
  )
  export(): Observable<unknown> {
    return range(1, 3).pipe(map((row) => ({ event: 'row', data: row })));
  }
}
