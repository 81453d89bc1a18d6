import { ValidationPipe } from '@nestjs/common';
import * as classTransformer from 'class-transformer';
import * as classValidator from 'class-validator';
import { RedisLockService } from 'nestjs-redis-lock';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { OrdersController } from './validated-orders.js';

describe('ValidationPipe', () => {
  const start = useApps();

  it('makes the body that the key is made of; a body that it refuses takes no lock', async () => {
    const { app, url } = await start({
      imports: [inMemory()],
      controllers: [OrdersController],
      // An application need not name the packages: Nest would look for them in its own folder.
      configure: (each) =>
        each.useGlobalPipes(
          new ValidationPipe({
            transform: true,
            transformOptions: { enableImplicitConversion: true },
            validatorPackage: classValidator,
            transformerPackage: classTransformer,
          }),
        ),
    });
    const acquired: string[] = [];
    app.get(RedisLockService).observe((event) => event.type === 'acquired' && acquired.push(event.resource));
    const pay = (body: object): Promise<Response> =>
      fetch(`${url}/orders/pay`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const orderId = '0b0f7a3e-64ab-4d36-9b5e-0a2f7f4b8f7d';

    expect(await (await pay({ orderId, cents: '250' })).json()).toEqual({ cents: 250, lock: `order:${orderId}` });
    for (const bad of [{}, { orderId: '7', cents: 1 }, { orderId, cents: 0 }])
      expect((await pay(bad)).status).toBe(400);
    expect(acquired).toEqual([`order:${orderId}`]);
  });
});
