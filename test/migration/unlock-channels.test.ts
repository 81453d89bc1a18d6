import { jest } from '@jest/globals';
import { EventEmitter, getEventListeners } from 'node:events';
import { UnlockChannels } from '../../lib/migration/unlock-channels.js';

const LONG_MS = 600_000;

/** A connection for messages, whose answers the test decides on. */
class FakeSubscriber extends EventEmitter {
  status = 'ready';
  readonly commands: string[] = [];
  answer: () => Promise<unknown> = () => Promise.resolve();

  subscribe(channel: string): Promise<unknown> {
    this.commands.push(`+${channel}`);
    return this.answer();
  }

  unsubscribe(channel: string): Promise<unknown> {
    this.commands.push(`-${channel}`);
    return Promise.resolve();
  }
}

describe('the channels on which unlocks are announced', () => {
  let subscriber: FakeSubscriber;
  let channels: UnlockChannels;

  beforeEach(() => {
    subscriber = new FakeSubscriber();
    channels = new UnlockChannels(subscriber);
  });

  it('one subscription serves all calls that wait, and ends with the last of them', async () => {
    const [first, second] = [channels.join('a'), channels.join('a')];
    expect(subscriber.commands).toEqual(['+a']);
    first.leave();
    expect(subscriber.commands).toEqual(['+a']);
    second.leave();
    second.leave();
    expect(subscriber.commands).toEqual(['+a', '-a']);
    expect(channels.size).toBe(0);
  });

  it('a wait resolves when it listens, and then only for an unlock of its own channel', async () => {
    const wait = channels.join('a');
    await wait.untilUnlocked(LONG_MS, never());
    wait.ask();
    const woken = watched(wait.untilUnlocked(LONG_MS, never()));
    subscriber.emit('message', 'b', '0');
    await turn();
    expect(woken.isOver).toBe(false);
    subscriber.emit('message', 'a', '0');
    await turn();
    expect(woken.isOver).toBe(true);
    wait.leave();
  });

  it('an unlock that comes while the question is under way is not missed, and one before it wakes no call', async () => {
    const wait = channels.join('a');
    await wait.untilUnlocked(LONG_MS, never());
    subscriber.emit('message', 'a', '0');
    wait.ask();
    const woken = watched(wait.untilUnlocked(LONG_MS, never()));
    await turn();
    expect(woken.isOver).toBe(false);
    subscriber.emit('message', 'a', '0');
    await woken.promise;

    wait.ask();
    subscriber.emit('message', 'a', '0');
    const missed = watched(wait.untilUnlocked(LONG_MS, never()));
    await turn();
    expect(missed.isOver).toBe(true);
    wait.leave();
  });

  it('a call that joins others asks once more: an unlock may have been announced since it asked', async () => {
    const first = channels.join('a');
    await first.untilUnlocked(LONG_MS, never());
    const second = channels.join('a');
    await second.untilUnlocked(LONG_MS, never());
    expect(subscriber.commands).toEqual(['+a']);
    first.leave();
    second.leave();
  });

  it('every call asks again when the connection is new, and a channel that was left is not subscribed to', async () => {
    const [kept, left] = [channels.join('a'), channels.join('b')];
    await kept.untilUnlocked(LONG_MS, never());
    subscriber.status = 'reconnecting';
    left.leave();
    kept.ask();
    subscriber.status = 'ready';
    subscriber.emit('ready');
    await kept.untilUnlocked(LONG_MS, never());
    expect(subscriber.commands).toEqual(['+a', '+b', '+a']);
    kept.leave();
  });

  it('without a connection it subscribes to nothing, and the wait ends with its time', async () => {
    subscriber.status = 'connecting';
    const wait = channels.join('a');
    await wait.untilUnlocked(1, never());
    expect(subscriber.commands).toEqual([]);
    wait.leave();
    expect(subscriber.commands).toEqual([]);
  });

  it('a subscription that is refused is not tried again at once; one that fails otherwise is', async () => {
    subscriber.answer = () => Promise.reject(replyError('NOPERM no permissions to access a channel'));
    const refused = channels.join('a');
    await refused.untilUnlocked(400, never());
    expect(subscriber.commands).toEqual(['+a']);
    refused.leave();

    subscriber.commands.length = 0;
    subscriber.answer = () => {
      subscriber.answer = () => Promise.resolve();
      return Promise.reject(replyError('BUSY Redis is busy running a script'));
    };
    const wait = channels.join('b');
    await wait.untilUnlocked(LONG_MS, never());
    expect(subscriber.commands).toEqual(['+b', '+b']);
    wait.leave();
  });

  it('a channel that is refused is asked for every 10 s, however many calls wait, and when the connection is new', async () => {
    jest.useFakeTimers();
    try {
      subscriber.answer = () => Promise.reject(replyError('NOPERM no permissions to access a channel'));
      const asked = (): string[] => subscriber.commands.splice(0).filter((command) => command === '+a');
      for (let turn = 0; turn < 99; turn++) {
        const wait = channels.join('a');
        await jest.advanceTimersByTimeAsync(100);
        wait.leave();
      }
      expect(asked()).toHaveLength(1);
      const wait = channels.join('a');
      await jest.advanceTimersByTimeAsync(30_000);
      expect(asked()).toHaveLength(3);
      subscriber.emit('ready');
      expect(asked()).toHaveLength(1);
      await jest.advanceTimersByTimeAsync(1);
      wait.leave();
      subscriber.emit('close');
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('a wait ends when its signal aborts, and keeps no listener on it', async () => {
    const pause = new AbortController();
    const wait = channels.join('a');
    await wait.untilUnlocked(LONG_MS, pause.signal);
    wait.ask();
    expect(getEventListeners(pause.signal, 'abort')).toEqual([]);
    const woken = wait.untilUnlocked(LONG_MS, pause.signal);
    pause.abort();
    await woken;
    expect(subscriber.commands).toEqual(['+a']);
    wait.leave();
  });
});

function replyError(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

function never(): AbortSignal {
  return new AbortController().signal;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function watched(promise: Promise<void>): { readonly promise: Promise<void>; isOver: boolean } {
  const state = { promise, isOver: false };
  void promise.then(() => (state.isOver = true));
  return state;
}
