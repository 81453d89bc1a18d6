import { EventEmitter2, EventEmitterModule } from '@nestjs/event-emitter';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { Invoices } from './orders.js';

describe('@nestjs/event-emitter', () => {
  const start = useApps();

  it('a locked listener still listens', async () => {
    const { app } = await start({ imports: [inMemory(), EventEmitterModule.forRoot()], providers: [Invoices] });
    await app.get(EventEmitter2).emitAsync('order.paid', { orderId: '7' });
    expect(app.get(Invoices).written).toEqual(['7']);
  });
});
