import { type CanActivate, Controller, Get, Inject, type MessageEvent, Param, Sse, UseGuards } from '@nestjs/common';
import { concat, finalize, NEVER, Observable, of } from 'rxjs';
import { LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { eventually } from '../../support/expect/eventually.js';
import { PLATFORMS } from '../nest-apps.js';
import { type Call, useHandlerShop } from './handler-shop.js';
import { gate } from '../../support/expect/tracked.js';

let finish = gate();
let guard = gate();
let events: string[] = [];

class Slow implements CanActivate {
  async canActivate(): Promise<boolean> {
    events.push('guarded');
    await guard.opened;
    return true;
  }
}

@Controller()
class PricesController {
  @Inject() readonly locks!: RedisLockService;

  @Sse('endless')
  @LockHandler('prices')
  endless(): Observable<MessageEvent> {
    const token = this.locks.current()?.fencingToken;
    return concat(of({ data: `held by token ${token}` }), NEVER).pipe(finalize(() => events.push('stream ended')));
  }

  @Sse('fails')
  @LockHandler('prices')
  fails(): Observable<MessageEvent> {
    return concat(
      of({ data: 'one' }),
      new Observable<never>((subscriber) => subscriber.error(new Error('exchange closed'))),
    );
  }

  @Get('slow/:who')
  @LockHandler({ key: 'prices', waitMs: Infinity })
  async slow(@Param('who') who: string): Promise<string> {
    events.push(`${who} began`);
    await finish.opened;
    events.push(`${who} ended`);
    return who;
  }

  @Get('guarded')
  @UseGuards(Slow)
  @LockHandler({ key: 'prices', waitMs: Infinity })
  async guarded(): Promise<void> {
    events.push('ran');
  }
}

describe.each(PLATFORMS)('@LockHandler and clients that come and go, on %s', (_, adapter) => {
  beforeEach(() => {
    [finish, guard, events] = [gate(), gate(), []];
  });
  const shop = useHandlerShop('prices', adapter, { controllers: [PricesController] });
  afterEach(() => {
    finish.open();
    guard.open();
  });

  const call = (path: string): Call => shop().call(path);
  const holders = (): Promise<number> => shop().holders();
  const waiters = (): Promise<number> => shop().waiters();

  it('a stream of server-sent events holds the lock until the client disconnects', async () => {
    const leaving = new AbortController();
    const response = await fetch(`${shop().url}/endless`, { signal: leaving.signal });
    const reader = response.body!.getReader();
    let text = '';
    while (!text.includes('\n\n')) text += new TextDecoder().decode((await reader.read()).value);
    expect(text).toContain('data: held by token');
    expect(await holders()).toBe(1);
    leaving.abort();
    await eventually(async () => expect(await holders()).toBe(0));
    expect(events).toEqual(['stream ended']);
  });

  it('a client that goes away while it waits is in nobody’s way: it never runs, and is no error in the log', async () => {
    call('slow/first');
    await eventually(() => expect(events).toEqual(['first began']));
    const { hangUp } = call('slow/second');
    await eventually(async () => expect(await waiters()).toBe(1));
    hangUp();
    await eventually(async () => expect(await waiters()).toBe(0));
    const third = fetch(`${shop().url}/slow/third`);
    await eventually(async () => expect(await waiters()).toBe(1));
    finish.open();
    expect(await (await third).text()).toBe('third');
    expect(events).toEqual(['first began', 'first ended', 'third began', 'third ended']);
    expect(shop().log.at('error')).toEqual([]);
  });

  it('a client that disconnects while the handler runs changes nothing: the work continues under the lock', async () => {
    const { hangUp } = call('slow/first');
    await eventually(() => expect(events).toEqual(['first began']));
    hangUp();
    await eventually(async () => expect(await connections()).toBe(0));
    expect(await holders()).toBe(1);
    finish.open();
    await eventually(async () => expect(await holders()).toBe(0));
    expect(events).toEqual(['first began', 'first ended']);
  });

  const connections = (): Promise<number> =>
    new Promise((resolve, reject) =>
      shop()
        .app.getHttpServer()
        .getConnections((error: Error | null, count: number) => (error ? reject(error) : resolve(count))),
    );
});
