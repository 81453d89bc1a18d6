import { inspect } from 'node:util';
import type { LockOptions } from '../../../../lib/core/api/lock-options.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import {
  answered,
  executedWhen,
  failing,
  lostOnTheWay,
  replyLost,
  repliedWhen,
} from '../../../support/world/scripted-store.js';
import { gate, track } from '../../../support/expect/tracked.js';

describe('adopting a lease', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let c: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
    c = world.instance('c');
  });

  /** The text of a lease that process a transfers. */
  async function transferred(options?: LockOptions, resource: string | string[] = 'stock'): Promise<string> {
    const lease = await a.locks.acquire(resource, options);
    return lease.transfer();
  }

  it('goes on with the length and the mode it had, and the watchdog of the adopter', async () => {
    const lease = await b.locks.adopt(await transferred({ mode: 'write', leaseMs: 3_000 }));
    expect([lease.mode, lease.remainingMs()]).toEqual(['write', 3_000 - 32]);
    await world.clock.advance(30_000);
    expect(lease.isHeld()).toBe(true);
    expect(eventsOf(b, 'acquired')).toMatchObject([
      { resource: 'stock', mode: 'write', fencingToken: lease.fencingToken, attempts: 1 },
    ]);
    await lease.release();
    expect(eventsOf(b, 'released')).toHaveLength(1);
  });

  it('takes what the adopter asks for: another length, a fixed lease, a limit', async () => {
    const longer = await b.locks.adopt(await transferred({ leaseMs: 3_000 }), { leaseMs: 60_000 });
    expect(longer.remainingMs()).toBe(60_000 - 602);
    await longer.release();
    const fixed = await b.locks.adopt(await transferred({ leaseMs: 3_000 }), { watchdog: false });
    const limited = await b.locks.adopt(await transferred({}, 'other'), { maxHoldMs: 500 });
    await world.clock.advance(3_000);
    expect(fixed.signal.reason).toMatchObject({ reason: 'expired' });
    expect(limited.signal.reason).toMatchObject({ reason: 'maxHold' });
  });

  it('works in the process that handed it on, too', async () => {
    const text = await transferred();
    const lease = await a.locks.adopt(text);
    expect(await lease.verify()).toBe(true);
    await lease.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it.each([
    ['nobody adopted it in time, and it is free', async () => {}],
    ['nobody adopted it in time, and somebody else has it', async () => void (await c.locks.acquire('stock'))],
  ])('is told that it is over where %s', async (_, then) => {
    const text = await transferred();
    await world.clock.advance(60_000);
    await then();
    await expect(b.locks.adopt(text)).rejects.toMatchObject({
      code: 'LEASE_LOST',
      reason: 'expired',
      message: expect.stringMatching(/it was not adopted within the leaseMs of transfer\(\)/),
    });
  });

  it('is told that it is over where it was adopted and released, and where Redis does not say more', async () => {
    const text = await transferred();
    await (await b.locks.adopt(text)).release();
    await expect(c.locks.adopt(text)).rejects.toMatchObject({ reason: 'expired' });
    c.store.fates.inspect = lostOnTheWay;
    const impatient = track(c.locks.adopt(text, { waitMs: 20 }));
    await world.clock.advance(20);
    expect(impatient.error).toMatchObject({ reason: 'expired' });
    c.store.fates.inspect = failing('unknown');
    await expect(c.locks.adopt(text)).rejects.toMatchObject({ reason: 'expired' });
  });

  it('takes no longer than one attempt to say so where it does not wait', async () => {
    const text = await transferred();
    await (await b.locks.adopt(text)).release();
    const reply = gate();
    c.store.fates.transfer = repliedWhen(reply.opened);
    c.store.fates.inspect = lostOnTheWay;
    const adopting = track(c.locks.adopt(text, { waitMs: 0, attemptTimeoutMs: 100 }));
    await world.clock.advance(60);
    reply.open();
    await world.clock.advance(39);
    expect(adopting.state).toBe('pending');
    await world.clock.advance(1);
    expect(adopting.error).toMatchObject({ reason: 'expired' });
  });

  it('succeeds once: whoever comes second is told that it is lost, and disturbs nobody', async () => {
    const text = await transferred();
    const lease = await b.locks.adopt(text);
    await expect(c.locks.adopt(text)).rejects.toMatchObject({
      code: 'LEASE_LOST',
      reason: 'adopted',
      message:
        'The lease of "stock" is no longer held: another call has adopted it and holds it. Let the first delivery do the work.',
    });
    await expect(b.locks.adopt(text)).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await settle();
    expect(await lease.verify()).toBe(true);
  });

  it('comes too late when the lease has ended', async () => {
    const text = await transferred({ leaseMs: 1_000 });
    await world.clock.advance(1_000);
    await expect(b.locks.adopt(text)).rejects.toMatchObject({ code: 'LEASE_LOST', resource: 'stock' });
  });

  it('makes a writer that can be downgraded, and transferred again', async () => {
    const lease = await b.locks.adopt(await transferred({ mode: 'write' }));
    const reader = track(c.locks.acquire('stock', { mode: 'read', waitMs: Infinity }));
    await settle();
    await lease.downgrade();
    await settle();
    expect([reader.state, lease.mode]).toEqual(['fulfilled', 'read']);
    const again = await c.locks.adopt(await lease.transfer());
    expect([again.mode, again.fencingToken]).toEqual(['read', lease.fencingToken]);
  });

  it('keeps the permits of a semaphore', async () => {
    const permits = await a.locks.semaphore('exports', { permits: 3 }).acquire({ count: 2 });
    const adopted = await b.locks.adopt(await permits.transfer());
    const exports = c.locks.semaphore('exports', { permits: 3 });
    expect([adopted.mode, await exports.available()]).toEqual(['semaphore', 1]);
    await adopted.release();
    expect(await exports.available()).toBe(3);
  });

  it('of several resources is all or nothing', async () => {
    const text = await transferred({}, ['stock', 'other']);
    const { holders } = await b.locks.inspect('stock');
    await b.locks.operators.forceRelease('stock', { fencingToken: holders[0]!.fencingToken });
    await expect(b.locks.adopt(text)).rejects.toMatchObject({ code: 'LEASE_LOST', resource: 'stock' });
    expect(world.server.isEmpty).toBe(true);
  });

  it.each(['', 'garbage', 'lease1.', 'lease1.e30', 'lease1.W10', 'lease1.W251bGxd', undefined, 42, {}])(
    'refuses what is no such text: %p',
    async (text) => {
      await expect(b.locks.adopt(text as string)).rejects.toMatchObject({
        code: 'INVALID_LOCK_OPTIONS',
        option: 'text',
      });
      expect(b.store.commands).toHaveLength(0);
    },
  );

  it('never shows the text, or what is in it: it may be nearly right', async () => {
    const text = await transferred();
    const secret = a.store.sent('transfer')[0]!.next!;
    const fields = JSON.parse(Buffer.from(text.slice('lease1.'.length), 'base64url').toString()) as unknown[][];
    const changed = [
      text.slice(0, -4),
      text.slice(1),
      ...fields[0]!.map((_, place) => {
        const wrong = fields[0]!.with(place, null);
        return `lease1.${Buffer.from(JSON.stringify([wrong])).toString('base64url')}`;
      }),
    ];
    for (const each of changed) {
      const error: unknown = await b.locks.adopt(each).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'text' });
      expect(inspect(error, { depth: 5 })).not.toContain(each);
      expect(inspect(error, { depth: 5 })).not.toContain(secret);
    }
    expect(b.store.commands).toHaveLength(0);
  });

  it('shows no owner id in any error or event of a transfer', async () => {
    const text = await transferred();
    b.store.next('transfer', lostOnTheWay);
    const errors = [
      track(b.locks.adopt(text, { waitMs: 0, attemptTimeoutMs: 10 })),
      track(c.locks.adopt(text.replace('lease1', 'lease2'))),
    ];
    await world.clock.advance(100);
    const shown = inspect([errors.map(({ error }) => error), a.events, b.events, c.events], { depth: 8 });
    expect(shown).toContain('LOCK_UNAVAILABLE');
    expect(shown).not.toMatch(/secret|lease1/);
  });

  describe('while Redis is silent', () => {
    it('asks again, for the same owner, until it is answered', async () => {
      const text = await transferred();
      b.store.next('transfer', replyLost, lostOnTheWay, failing('notExecuted'), answered);
      const adopting = track(b.locks.adopt(text, { attemptTimeoutMs: 100 }));
      await world.clock.advance(1_000);
      expect(adopting.value.isHeld()).toBe(true);
      const attempts = b.store.sent('transfer');
      expect(attempts).toHaveLength(4);
      expect(new Set(attempts.map(({ next }) => next)).size).toBe(1);
      expect(await adopting.value.verify()).toBe(true);
    });

    it('gives up after waitMs, and gives back what it may have got', async () => {
      const text = await transferred();
      b.store.fates.transfer = replyLost;
      const adopting = track(b.locks.adopt(text, { waitMs: 250, attemptTimeoutMs: 100 }));
      await world.clock.advance(249);
      expect(adopting.state).toBe('pending');
      await world.clock.advance(1);
      expect(adopting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', resource: 'stock' });
      expect(world.server.isEmpty).toBe(true);
      await world.clock.advance(60_000);
      expect(world.clock.timers).toBe(0);
    });

    it('asks once with waitMs: 0', async () => {
      const text = await transferred();
      b.store.fates.transfer = lostOnTheWay;
      const adopting = track(b.locks.adopt(text, { waitMs: 0 }));
      await world.clock.advance(1_000);
      expect(adopting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
      expect(b.store.sent('transfer')).toHaveLength(1);
    });

    it('gives up at once where Redis refuses', async () => {
      const text = await transferred();
      b.store.next('transfer', failing('refused'));
      await expect(b.locks.adopt(text)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      expect(b.store.sent('transfer')).toHaveLength(1);
      await c.locks.adopt(text);
    });

    it.each([1, 2])('withdraws a late grant of attempt %i, after it has given up', async (attempt) => {
      const text = await transferred();
      const late = gate();
      const fates = [failing('notExecuted'), failing('notExecuted')];
      b.store.next('transfer', ...fates.with(attempt - 1, executedWhen(late.opened)));
      const adopting = track(b.locks.adopt(text, { waitMs: 130, attemptTimeoutMs: 100 }));
      await world.clock.advance(130);
      expect(adopting.state).toBe('rejected');
      await world.clock.advance(1_000); // its withdrawal has been answered
      late.open();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('keeps what it holds when an attempt is answered late', async () => {
      const text = await transferred();
      const late = gate();
      b.store.next('transfer', repliedWhen(late.opened));
      const adopting = track(b.locks.adopt(text, { attemptTimeoutMs: 100 }));
      await world.clock.advance(200);
      late.open();
      await settle();
      expect(await adopting.value.verify()).toBe(true);
      expect(b.store.sent('release')).toHaveLength(0);
    });

    it('asks again when the answer came after the lease was over', async () => {
      const text = await transferred();
      const late = gate();
      b.store.next('transfer', repliedWhen(late.opened));
      const adopting = track(b.locks.adopt(text, { leaseMs: 500 }));
      await settle();
      world.clock.standStill(600);
      late.open();
      await world.clock.advance(100);
      expect(adopting.error).toMatchObject({ code: 'LEASE_LOST' });
      expect(world.server.isEmpty).toBe(true);
    });
  });

  describe('at a shutdown', () => {
    it('is refused', async () => {
      const text = await transferred();
      await b.locks.shutdown(0);
      await expect(b.locks.adopt(text)).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
      expect(b.store.sent('transfer')).toHaveLength(0);
      expect((await c.locks.adopt(text)).isHeld()).toBe(true);
    });

    it('ends at once, and gives back what it may have got', async () => {
      const text = await transferred();
      b.store.next('transfer', replyLost);
      const adopting = track(b.locks.adopt(text));
      await settle();
      const down = track(b.locks.shutdown(0));
      await settle();
      expect(adopting.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
      await world.clock.advance(5_000);
      expect([down.state, world.server.isEmpty]).toEqual(['fulfilled', true]);
    });

    it('ends at once in a pause between two tries', async () => {
      const text = await transferred();
      b.store.next('transfer', failing('notExecuted'));
      const adopting = track(b.locks.adopt(text));
      await settle();
      void b.locks.shutdown(0);
      await settle();
      expect(adopting.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
      expect((await c.locks.adopt(text)).isHeld()).toBe(true);
    });

    it('gives back what is granted in the very moment it begins', async () => {
      const text = await transferred();
      const reply = gate();
      b.store.next('transfer', repliedWhen(reply.opened));
      const adopting = track(b.locks.adopt(text));
      await settle();
      reply.open();
      await Promise.resolve();
      void b.locks.shutdown(0);
      await world.clock.advance(2_000);
      expect(adopting.state).toBe('rejected');
      expect(world.server.isEmpty).toBe(true);
    });

    it('counts the adopted lease as held: its work is waited for', async () => {
      const lease = await b.locks.adopt(await transferred());
      const down = track(b.locks.shutdown(5_000));
      await world.clock.advance(1_000);
      expect(down.state).toBe('pending');
      await lease.release();
      await settle();
      expect([down.state, world.server.isEmpty]).toEqual(['fulfilled', true]);
    });
  });
});
