import { Body, Controller, HttpCode, HttpException, Post, UseInterceptors } from '@nestjs/common';
import { gate } from '../../../support/expect/tracked.js';
import { eventually } from '../../../support/expect/eventually.js';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { IdempotencyInterceptor } from './idempotency.interceptor.js';

describe('the Idempotency-Key of the cookbook', () => {
  const start = useApps();
  let charged: number[];
  let opened: Promise<void> | undefined;

  @Controller('charges')
  @UseInterceptors(IdempotencyInterceptor)
  class Charges {
    @Post()
    @HttpCode(202)
    async charge(@Body('cents') cents: number): Promise<{ number: number }> {
      charged.push(cents);
      await opened;
      if (cents < 0) throw new HttpException('no', 402);
      return { number: charged.length };
    }
  }

  let url: string;
  beforeEach(async () => {
    charged = [];
    opened = undefined;
    const app = await start({ imports: [inMemory()], controllers: [Charges] });
    url = `${app.url}/charges`;
  });

  const charge = async (key: string | undefined, cents: number, user = 'ann') => {
    const headers: Record<string, string> = { 'content-type': 'application/json', authorization: user };
    if (key !== undefined) headers['idempotency-key'] = key;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ cents }) });
    return [answer.status, ((await answer.json()) as { number?: number }).number];
  };

  it('answers a request that comes again as the first time, and does the work once', async () => {
    expect([await charge('k1', 5), await charge('k1', 5)]).toEqual([
      [202, 1],
      [202, 1],
    ]);
    expect(await charge('k2', 5)).toEqual([202, 2]);
    expect(charged).toEqual([5, 5]);
  });

  it.each([undefined, '', 'with space', 'x'.repeat(256)])('answers 400 to the key %p', async (key) => {
    expect((await charge(key, 5))[0]).toBe(400);
    expect(charged).toEqual([]);
  });

  it('answers 409 while the first request runs', async () => {
    const end = gate();
    opened = end.opened;
    const first = charge('k1', 5);
    await eventually(() => expect(charged).toEqual([5]));
    expect((await charge('k1', 5))[0]).toBe(409);
    end.open();
    expect(await first).toEqual([202, 1]);
  });

  it('answers 422 to another request with the key', async () => {
    await charge('k1', 5);
    expect((await charge('k1', 6))[0]).toBe(422);
    expect(charged).toEqual([5]);
  });

  it('keeps the keys of users apart', async () => {
    expect([await charge('k1', 5), await charge('k1', 5, 'bob')]).toEqual([
      [202, 1],
      [202, 2],
    ]);
  });

  it('keeps no error, so that the request can be sent again', async () => {
    expect([(await charge('k1', -1))[0], (await charge('k1', -1))[0]]).toEqual([402, 402]);
    expect(charged).toEqual([-1, -1]);
  });
});
