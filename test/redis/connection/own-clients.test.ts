import { EventEmitter } from 'node:events';
import { jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { OwnClients } from '../../../lib/redis/connection/own-clients.js';

/** Time for which ioredis keeps the process alive after an attempt without a reply of any sentinel. */
const HELD_MS = 2_000;
const ATTEMPT_MS = 700;

/** A client of ioredis whose sentinels never answer, as it is while the process may exit: it gives up after each attempt. */
class Unanswered extends EventEmitter {
  readonly options = { sentinels: [{ host: '127.0.0.1', port: 1 }] };
  readonly status = 'end';
  /** When this client kept the process alive: from, to. */
  readonly held: (readonly [number, number])[] = [];

  connect(): Promise<void> {
    const from = Date.now();
    return new Promise((_, reject) => {
      setTimeout(() => {
        this.held.push([from, Date.now() + HELD_MS]);
        this.emit('end');
        reject(new Error('All sentinels are unreachable'));
      }, ATTEMPT_MS);
    });
  }
}

describe('clients of sentinels that do not answer, of a process that may exit', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('all rest at the same time, so that the process can exit: two instances, and two clients of each', async () => {
    const clients: Unanswered[] = [];
    for (let instance = 0; instance < 2; instance++) {
      const own = new OwnClients(30_000, true);
      for (let client = 0; client < 2; client++) {
        clients.push(own.add(new Unanswered() as unknown as Redis) as unknown as Unanswered);
        clients
          .at(-1)!
          .connect()
          .catch(() => {});
        await jest.advanceTimersByTimeAsync(650);
      }
    }
    await jest.advanceTimersByTimeAsync(60_000);

    const held = clients.flatMap((client) => client.held).toSorted(([one], [other]) => one - other);
    let until = held[0]![0];
    const gaps = held.filter(([from, to]) => {
      const isAfterAGap = from > until;
      until = Math.max(until, to);
      return isAfterAGap;
    });
    expect(gaps.length).toBeGreaterThan(5);
    // None has given up for good.
    for (const client of clients) expect(client.held.at(-1)![1]).toBeGreaterThan(Date.now() - 10_000);
  });
});
