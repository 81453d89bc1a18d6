import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { Credentials, type RedisCredentials } from '../../../lib/redis/connection/credentials.js';
import { rejection } from '../../support/expect/eventually.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';

const MINUTE_MS = 60_000;

/** A client of ioredis, of which only what the credentials touch is there. */
class FakeClient extends EventEmitter {
  status = 'wait';
  readonly condition: { auth?: unknown; subscriber: boolean; protocol?: number } = { subscriber: false };
  readonly connector = { connecting: false, connect: async () => ({}) };
  readonly shown: unknown[][] = [];
  /** The reply of Redis to AUTH. */
  answer: Error | 'OK' = 'OK';

  /** Resolves when the handshake is accepted. */
  async open(): Promise<void> {
    this.emit('connecting');
    await this.connector.connect();
    this.status = 'ready';
    this.emit('ready');
  }

  async call(...words: unknown[]): Promise<unknown> {
    this.shown.push(words);
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }
}

class World {
  readonly clock = new FakeClock();
  readonly lines: string[] = [];
  calls = 0;
  /** The next result of the provider. */
  provide: () => RedisCredentials | Promise<RedisCredentials> = () => ({ password: `secret-${this.calls}` });
  readonly credentials = new Credentials(
    () => {
      this.calls++;
      return this.provide();
    },
    (line) => this.lines.push(line),
    this.clock,
  );

  client(renew?: () => Promise<void>): FakeClient {
    const client = new FakeClient();
    client.on('error', () => {});
    this.credentials.attach(client as unknown as Redis, renew);
    return client;
  }

  in(ms: number): Date {
    return new Date(this.clock.wallNow() + ms);
  }
}

function refused(message = 'WRONGPASS invalid username-password pair'): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

describe('credentials that change', () => {
  it('are asked for once for connections that are made at the same time, and again for the next', async () => {
    const world = new World();
    const [a, b] = [world.client(), world.client()];
    await Promise.all([a.open(), b.open()]);
    expect([a.condition.auth, b.condition.auth, world.calls]).toEqual(['secret-1', 'secret-1', 1]);
    await a.open();
    await settle();
    expect(a.condition.auth).toBe('secret-2');
    // The other connection is open, and shows the new ones.
    expect(b.shown).toEqual([['AUTH', 'secret-2']]);
  });

  it('are asked for again when four fifths of their time are over, and shown by AUTH', async () => {
    const world = new World();
    world.provide = () => ({ username: 'app', password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    expect(client.condition.auth).toEqual(['app', 'secret-1']);
    await world.clock.advance(47_900);
    expect(world.calls).toBe(1);
    await world.clock.advance(200);
    expect(client.shown).toEqual([['AUTH', 'app', 'secret-2']]);
    await world.clock.advance(48_000);
    expect(client.shown).toHaveLength(2);
  });

  it('are not shown again where they are the same', async () => {
    const world = new World();
    world.provide = () => ({ password: 'same', expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    await world.clock.advance(10 * MINUTE_MS);
    expect(client.shown).toEqual([]);
    expect(world.calls).toBeGreaterThan(10);
  });

  it.each([
    ['with RESP2 by a new connection', undefined, { renewed: 1, shown: 0 }],
    ['with RESP3 by AUTH', 3, { renewed: 0, shown: 1 }],
  ])('are shown where a client listens: %s', async (_, protocol, expected) => {
    const world = new World();
    world.provide = () => ({ password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    let renewed = 0;
    const client = world.client(async () => void renewed++);
    await client.open();
    Object.assign(client.condition, { subscriber: true, protocol });
    await world.clock.advance(50_000);
    expect({ renewed, shown: client.shown.length }).toEqual(expected);
  });

  it('of a provider that fails: tried again after longer and longer pauses, with a line a minute', async () => {
    const world = new World();
    world.provide = () => ({ password: 'hunter2', expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    world.provide = () => Promise.reject(new Error('no token in place of hunter2'));
    await world.clock.advance(48_000 + 3 * MINUTE_MS);
    // 1, 2, 4, 8, 16, 30, 30 ... s
    expect(world.calls).toBeGreaterThan(8);
    expect(world.calls).toBeLessThan(14);
    expect(world.lines).toHaveLength(3);
    expect(world.lines[0]).toBe(
      'credentials() of the connection to Redis failed: no token in place of ***. Open connections go on with the last ' +
        'credentials, and it is called again.',
    );
    expect(client.shown).toEqual([]);
    expect(world.credentials.problem).toContain('no token');
    world.provide = () => ({ password: 'next' });
    await world.clock.advance(MINUTE_MS);
    expect(client.shown).toEqual([['AUTH', 'next']]);
    expect(world.credentials.problem).toBeUndefined();
  });

  it('that Redis refuses are shown again after longer and longer pauses, and the connection stays', async () => {
    const world = new World();
    world.provide = () => ({ password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    client.answer = refused();
    world.provide = () => ({ password: 'wrong', expiresAt: world.in(MINUTE_MS) });
    await world.clock.advance(48_000 + MINUTE_MS);
    expect(client.status).toBe('ready');
    expect(client.shown.length).toBeGreaterThan(3);
    expect(client.shown.length).toBeLessThan(10);
    expect(world.lines[0]).toContain('AUTH on an open connection failed: WRONGPASS');
    expect(world.lines.join()).not.toContain('wrong,');
  });

  it('of a provider that hangs: a new connection takes the last ones after 3 s, if they have not expired', async () => {
    const world = new World();
    world.provide = () => ({ password: `secret-${world.calls}`, expiresAt: world.in(MINUTE_MS) });
    const client = world.client();
    await client.open();
    world.provide = () => new Promise(() => {});
    let isOpen = false;
    void client.open().then(() => (isOpen = true));
    await world.clock.advance(2_900);
    expect(isOpen).toBe(false);
    await world.clock.advance(200);
    expect([isOpen, client.condition.auth]).toEqual([true, 'secret-1']);
    await world.clock.advance(MINUTE_MS);
    isOpen = false;
    const errors: Error[] = [];
    client.on('error', (error: Error) => errors.push(error));
    void client.open().then(() => (isOpen = true));
    await world.clock.advance(10_000);
    expect(isOpen).toBe(false);
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('it has not answered for')]);
    expect(world.credentials.problem).toBe(errors[0]?.message);
    world.provide = () => ({ password: 'next' });
    await world.clock.advance(MINUTE_MS);
    expect([isOpen, client.condition.auth]).toEqual([true, 'next']);
  });

  it('that have expired when they come are not shown: the provider is called again, less and less often', async () => {
    const world = new World();
    world.provide = () => ({ password: 'old', expiresAt: world.in(-1) });
    const client = world.client();
    const errors: Error[] = [];
    client.on('error', (error: Error) => errors.push(error));
    void client.open();
    await world.clock.advance(MINUTE_MS);
    expect(client.condition.auth).toBeUndefined();
    expect(world.calls).toBeLessThan(10);
    const why = 'credentials() of the connection to Redis failed: it returned credentials that expired 0 s ago';
    expect(errors[0]?.message).toContain(why);
    expect(world.lines[0]).toContain(why);
    world.provide = () => ({ password: 'new', expiresAt: world.in(MINUTE_MS) });
    await world.clock.advance(MINUTE_MS / 2);
    expect(client.condition.auth).toBe('new');
    expect(world.credentials.problem).toBeUndefined();
  });

  it('are not waited for by a client that is closed, and leave no timer', async () => {
    const world = new World();
    const client = world.client();
    world.provide = () => new Promise(() => {});
    const opening = rejection(client.open());
    await settle();
    world.credentials.close();
    expect((await opening).message).toBe('Connection is closed.');
    await settle();
    expect(world.clock.timers).toBe(0);
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'it returned no password'],
    ['an empty password', { password: '' }, 'it returned no password'],
    [
      'a username that is a number',
      { username: 1, password: 'hunter2' },
      'it returned a username that is not a string',
    ],
    ['an end that is no date', { password: 'hunter2', expiresAt: 'soon' }, 'neither a Date nor epoch milliseconds'],
    ['an end that is no valid date', { password: 'hunter2', expiresAt: new Date(NaN) }, 'neither a Date nor epoch'],
  ])('that are %s are refused, without their value', async (_, given, message) => {
    const world = new World();
    world.provide = () => given as RedisCredentials;
    const client = world.client();
    const errors: Error[] = [];
    client.on('error', (error: Error) => errors.push(error));
    client.open().catch(() => {});
    await settle();
    expect(errors[0]?.message).toContain(message);
    expect(errors[0]?.message).not.toContain('hunter2');
    world.credentials.close();
  });
});
