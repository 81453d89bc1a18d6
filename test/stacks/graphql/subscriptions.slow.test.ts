import { jest } from '@jest/globals';
import type { Provider } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { type Client, createClient } from 'graphql-ws';
import { LockExceptionFilter, maskLockErrors, RedisLockService } from 'nestjs-redis-lock';
import { WebSocket } from 'ws';
import { inMemory, type RunningApp, useApps } from '../../nest/nest-apps.js';
import { eventually } from '../../support/expect/eventually.js';
import { FeedResolver } from './feed.js';
import { OrdersResolver } from './orders.js';
import { SERVERS } from './servers.js';
import { INSIDES } from './shop.js';

/** The messages of a subscription's client. */
interface Received {
  readonly events: unknown[];
  readonly errors: unknown[];
  ended: boolean;
  unsubscribe(): void;
}

describe.each(SERVERS)('subscriptions of %s', (_, { adapter, graphql }) => {
  const start = useApps();
  const clients: Client[] = [];
  const sockets: WebSocket[] = [];
  let app: RunningApp;
  let feed: FeedResolver;

  const startWith = async (options: Parameters<typeof graphql>[0], ...filters: Provider[]): Promise<void> => {
    app = await start({
      adapter: adapter(),
      imports: [inMemory(), graphql(options)],
      providers: [FeedResolver, OrdersResolver, ...filters],
    });
    feed = app.app.get(FeedResolver);
  };

  afterEach(async () => {
    feed.news.open();
    for (const client of clients.splice(0)) await client.dispose();
    sockets.splice(0).forEach((socket) => socket.terminate());
  });

  /** By a connection of its own. */
  function subscribe(field: string): Received & { hangUp(): void } {
    class Socket extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols);
        sockets.push(this);
        received.hangUp = () => this.terminate();
      }
    }
    const received = {
      events: [] as unknown[],
      errors: [] as unknown[],
      ended: false,
      unsubscribe: () => {},
      hangUp: () => {},
    };
    const url = `${app.url.replace('http', 'ws')}/graphql`;
    const client = createClient({ url, webSocketImpl: Socket, retryAttempts: 0 });
    clients.push(client);
    received.unsubscribe = client.subscribe(
      { query: `subscription { ${field} }` },
      {
        next: ({ data, errors }) => {
          if (data) received.events.push(data[field]);
          if (errors) received.errors.push(...errors);
        },
        error: (error) => {
          received.errors.push(...(Array.isArray(error) ? (error as unknown[]) : [error]));
          received.ended = true;
        },
        complete: () => (received.ended = true),
      },
    );
    return received;
  }

  const lock = async (): Promise<[holders: number, waiters: number]> => {
    const { holders, waiters } = await app.app.get(RedisLockService).inspect('prices');
    return [holders.length, waiters.length];
  };

  describe('with the filter', () => {
    beforeEach(() => startWith({}, { provide: APP_FILTER, useClass: LockExceptionFilter }));

    it('@LockHandler holds the lock until the subscription ends, and its generator runs under it', async () => {
      const first = subscribe('prices');
      await eventually(() => expect(first.events).toEqual([1, 2]));
      expect(await lock()).toEqual([1, 0]);
      const second = subscribe('prices');
      await eventually(async () => expect(await lock()).toEqual([1, 1]));
      expect(second.events).toEqual([]);
      feed.news.open();
      await eventually(() => expect([first.ended, second.ended]).toEqual([true, true]));
      expect(second.events).toEqual([1, 2]);
      expect(feed.notes).toEqual(['price 1, prices', 'price 2, prices', 'end, prices', ...feed.notes.slice(0, 3)]);
      await eventually(async () => expect(await lock()).toEqual([0, 0]));
    });

    it.each(['unsubscribes', 'hangs up'])(
      'a client that %s frees the lock, also where the handler waits for an event that never comes',
      async (how) => {
        const { unsubscribe, hangUp } = subscribe('silent');
        await eventually(() => expect(feed.notes).toEqual(['waits, prices']));
        expect(await lock()).toEqual([1, 0]);
        if (how === 'unsubscribes') unsubscribe();
        else hangUp();
        await eventually(async () => expect(await lock()).toEqual([0, 0]));
        expect(app.log.at('error')).toEqual([]);
      },
    );

    it('a client that hangs up while its subscription waits for the lock stops waiting', async () => {
      const held = await app.app.get(RedisLockService).acquire('prices');
      const { hangUp } = subscribe('prices');
      await eventually(async () => expect(await lock()).toEqual([1, 1]));
      // graphql-ws reports what it cannot answer with.
      const reported = jest.spyOn(console, 'error').mockImplementation(() => undefined);
      hangUp();
      await eventually(async () => expect(await lock()).toEqual([1, 0]));
      await held.release();
      expect(feed.notes).toEqual([]);
      expect(reported).not.toHaveBeenCalled();
      reported.mockRestore();
    });

    it('a subscription with a filter works as without the lock', async () => {
      const even = subscribe('even');
      await eventually(() => expect(even.ended).toBe(true));
      expect(even).toMatchObject({ events: [2, 4], errors: [] });
      await eventually(async () => expect(await lock()).toEqual([0, 0]));
    });

    it('permits count subscribers: the snippet of the guide', async () => {
      expect(await ended(subscribe('ticks'))).toMatchObject({ events: [1, 2, 3], errors: [] });
    });

    it('a busy lock is answered by the filter', async () => {
      await using _held = await app.app.get(RedisLockService).acquire('prices');
      const { errors } = await ended(subscribe('impatient'));
      expect(errors).toMatchObject([{ extensions: { code: 'LOCK_BUSY', status: 423 } }]);
      expect(JSON.stringify(errors)).not.toMatch(/held|waitMs|lease/);
    });

    it('with onBusy: skip, the subscription ends without an event', async () => {
      await using _held = await app.app.get(RedisLockService).acquire('prices');
      expect(await ended(subscribe('skipped'))).toMatchObject({ events: [], errors: [] });
    });

    it('the loss of the lease ends the subscription, and shows nothing of our insides', async () => {
      const { errors } = await ended(subscribe('lost'));
      expect(errors).toMatchObject([
        {
          message: 'This request was interrupted, but may have been completed. Check before you try again.',
          extensions: { code: 'LEASE_LOST', status: 503 },
        },
      ]);
    });

    it('@DistributedLock is refused: its lock would end before the first event', async () => {
      const { errors } = await ended(subscribe('refused'));
      expect(errors).toMatchObject([{ extensions: { code: 'INVALID_LOCK_OPTIONS', status: 500 } }]);
      expect(app.log.at('error').join()).toMatch(/FeedResolver\.refused returned a generator.*needs @LockHandler/);
      expect(feed.notes).toEqual([]);
      expect(await lock()).toEqual([0, 0]);
    });

    it('an error that a handler throws after its first event passes no filter of Nest', async () => {
      const { errors } = await ended(subscribe('breaks'));
      expect(JSON.stringify(errors)).toMatch(INSIDES);
    });
  });

  describe('with maskLockErrors', () => {
    beforeEach(() => startWith({ transformSchema: maskLockErrors }));

    it('lock errors show nothing of our insides, also after the first event', async () => {
      const breaks = await ended(subscribe('breaks'));
      expect(breaks.events).toEqual([1]);
      expect(breaks.errors).toMatchObject([{ message: 'Another request is working on this. Try again later.' }]);
      await using _held = await app.app.get(RedisLockService).acquire('prices');
      const impatient = await ended(subscribe('impatient'));
      expect(impatient.errors).toMatchObject([{ extensions: { code: 'LOCK_BUSY', status: 423 } }]);
      expect(JSON.stringify([breaks.errors, impatient.errors])).not.toMatch(INSIDES);
    });

    it('a client that unsubscribes frees the lock, where the handler waits for an event that never comes', async () => {
      const { unsubscribe } = subscribe('silent');
      await eventually(() => expect(feed.notes).toEqual(['waits, prices']));
      unsubscribe();
      await eventually(async () => expect(await lock()).toEqual([0, 0]));
    });

    it('events, filters and the end of a subscription are as without', async () => {
      expect(await ended(subscribe('ticks'))).toMatchObject({ events: [1, 2, 3], errors: [] });
      expect(await ended(subscribe('even'))).toMatchObject({ events: [2, 4], errors: [] });
    });
  });

  async function ended<T extends Received>(received: T): Promise<T> {
    await eventually(() => expect(received.ended).toBe(true));
    return received;
  }
});
