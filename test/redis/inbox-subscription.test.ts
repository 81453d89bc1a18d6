import { EventEmitter } from 'node:events';
import { jest } from '@jest/globals';
import type { Connection } from '../../lib/redis/connection/connection.js';
import { Inbox } from '../../lib/redis/inbox.js';
import { FakeClock, settle } from '../support/world/fake-clock.js';

const NOPERM = Object.assign(new Error('NOPERM no access to the channel'), { name: 'ReplyError' });
const BUSY = Object.assign(new Error('BUSY a script runs'), { name: 'ReplyError' });

/** An inbox whose subscriptions are answered as the test says. */
class Subscribed extends EventEmitter {
  readonly clock = new FakeClock();
  readonly reconnected = jest.fn();
  readonly inbox: Inbox;
  status = 'ready';
  asked = 0;
  error: Error | undefined;

  constructor() {
    super();
    const connection = { subscriber: this, isConnected: true, onConnected: () => {}, serverInTurn: () => undefined };
    const { reconnected } = this;
    const ignore = (): void => {};
    const listener = {
      granted: ignore,
      retained: ignore,
      called: ignore,
      unasked: ignore,
      opened: ignore,
      freed: ignore,
      asked: ignore,
      deliveryUncertain: ignore,
    };
    this.inbox = new Inbox(
      connection as unknown as Connection,
      { own: 'inbox', ofAll: 'roll' },
      () => 'key',
      { ...listener, reconnected },
      this.clock,
    );
  }

  async subscribe(channel: string): Promise<unknown> {
    if (channel === 'inbox') this.asked++;
    if (this.error) throw this.error;
    return 1;
  }

  async connects(): Promise<void> {
    this.status = 'ready';
    this.emit('ready');
    await settle();
  }

  breaks(): void {
    this.status = 'reconnecting';
    this.emit('close');
  }

  async after(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await settle();
  }
}

describe('a subscription that Redis refuses', () => {
  it('is probed every 10 s, and waiters are notified once of the rejection and once of its end', async () => {
    const subscribed = new Subscribed();
    const { inbox, reconnected } = subscribed;
    subscribed.error = NOPERM;
    await subscribed.connects();
    expect([inbox.refusal, inbox.isSettled]).toEqual([expect.stringContaining(NOPERM.message), true]);
    for (let asked = 1; asked < 5; asked++) {
      expect(subscribed.asked).toBe(asked);
      await subscribed.after(9_999);
      expect(subscribed.asked).toBe(asked);
      await subscribed.after(1);
    }
    expect(reconnected).toHaveBeenCalledTimes(1);
    subscribed.error = undefined;
    await subscribed.after(10_000);
    expect([inbox.refusal, inbox.isSettled]).toEqual([undefined, true]);
    expect(reconnected).toHaveBeenCalledTimes(2);
    await subscribed.after(60_000);
    expect(subscribed.asked).toBe(6);
  });

  it('for a moment only, is asked for at once', async () => {
    const subscribed = new Subscribed();
    subscribed.error = BUSY;
    await subscribed.connects();
    expect(subscribed.inbox.isSettled).toBe(false);
    subscribed.error = undefined;
    await subscribed.after(250);
    expect([subscribed.inbox.isSettled, subscribed.asked]).toEqual([true, 2]);
  });

  it('is asked for on the next connection, and not once more for the last one', async () => {
    const subscribed = new Subscribed();
    subscribed.error = NOPERM;
    await subscribed.connects();
    subscribed.breaks();
    subscribed.error = undefined;
    await subscribed.connects();
    await subscribed.after(60_000);
    expect([subscribed.inbox.refusal, subscribed.asked]).toEqual([undefined, 2]);
  });

  it('is not asked for after the end', async () => {
    const subscribed = new Subscribed();
    subscribed.error = NOPERM;
    await subscribed.connects();
    subscribed.inbox.close();
    await subscribed.after(60_000);
    expect(subscribed.asked).toBe(1);
  });
});
