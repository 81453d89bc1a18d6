import type { LockStore, LockOwner } from '../../../lib/core/store/lock-store.js';
import {
  enqueue,
  EVERYTHING,
  expectSameToken,
  LONG_MS,
  newOwner,
  PATIENT,
  SHORT_MS,
  type Subject,
  take,
} from '../subjects/subject.js';
import { untimed } from '../../support/expect/untimed.js';

/** What every lock store keeps to: who holds what, and until when. */
export function describeLockStore(createSubject: () => Promise<Subject>, features = EVERYTHING): void {
  let subject: Subject;
  let first: LockStore;
  let second: LockStore;

  beforeEach(async () => {
    subject = await createSubject();
    ({ store: first } = await subject.open('first'));
    ({ store: second } = await subject.open('second'));
  });
  afterEach(() => subject.close());

  describe('acquire', () => {
    it('grants a free resource and refuses it to everybody else, saying how long the lease lasts', async () => {
      await take(first, newOwner(first, 'stock'));
      const reply = await second.acquire(newOwner(second, 'stock'), LONG_MS);
      expect(reply).toEqual({ status: 'busy', ttlMs: expect.any(Number), seen: expect.anything() });
      const { ttlMs } = reply as { ttlMs: number };
      expect(ttlMs).toBeGreaterThan(LONG_MS / 2);
      expect(ttlMs).toBeLessThanOrEqual(LONG_MS);
    });

    it('mints a larger token for every lease of a resource, whatever the instance', async () => {
      const tokens: number[] = [];
      for (const [store, resource] of [
        [first, 'a'],
        [second, 'a'],
        [first, 'a'],
      ] as const) {
        const owner = newOwner(store, resource);
        tokens.push(await take(store, owner));
        await store.release(owner);
      }
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(tokens.every(Number.isSafeInteger)).toBe(true);
    });

    it('never mints a token below the clock, so that tokens grow even after all data was lost', async () => {
      const tenMicroseconds = (Date.UTC(2025, 0, 1) - Date.UTC(2020, 0, 1)) * 100;
      const token = await take(first, newOwner(first, 'stock'));
      expect(token).toBeGreaterThan(tenMicroseconds * 32);
      expect(token % 32).toBe(0);
    });

    it('gives a re-sent command the same token, and starts its lease anew', async () => {
      const owner = newOwner(first, 'stock');
      const token = await take(first, owner, SHORT_MS);
      expectSameToken(await take(first, owner, LONG_MS), token, features);
      await subject.pass(SHORT_MS * 2);
      expect(await first.verify(owner)).toBe(true);
    });

    it('never makes a lease shorter by a command that comes late', async () => {
      const owner = newOwner(first, 'stock');
      await take(first, owner, LONG_MS);
      await take(first, owner, SHORT_MS);
      expect((await first.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS / 2);
    });

    it('counts a re-sent reentrant command as one entry', async () => {
      const owner = newOwner(first, 'stock', 'reentrant');
      const token = await take(first, owner);
      expectSameToken(await take(first, owner), token, features);
      expect((await first.inspect('stock')).holders[0]?.depth).toBe(1);
    });

    it.each([
      ['exclusive', 'reentrant'],
      ['reentrant', 'exclusive'],
      ['reentrant', 'reentrant'],
    ] as const)('keeps a resource held in %s mode from another owner in %s mode', async (held, wanted) => {
      const owner = newOwner(first, 'stock', held);
      await take(first, owner);
      const other = newOwner(second, 'stock', wanted);
      expect((await second.acquire(other, LONG_MS)).status).toBe('busy');
      await first.release(owner);
      expect((await second.acquire(other, LONG_MS)).status).toBe('granted');
    });

    it.each(['exclusive', 'reentrant'] as const)(
      'grants a resource again when the %s lease has expired',
      async (mode) => {
        const dead = newOwner(first, 'stock', mode);
        const token = await take(first, dead, SHORT_MS);
        await subject.pass(SHORT_MS * 2);
        expect(await take(second, newOwner(second, 'stock'))).toBeGreaterThan(token);
        expect(await first.verify(dead)).toBe(false);
      },
    );
  });

  describe.each(['exclusive', 'reentrant'] as const)('in %s mode, only the owner', (mode) => {
    let owner: LockOwner;
    let stranger: LockOwner;

    beforeEach(async () => {
      owner = newOwner(first, 'stock', mode);
      stranger = newOwner(second, 'stock', mode);
      await take(first, owner);
    });

    it('renews', async () => {
      expect(await second.renew(stranger, SHORT_MS)).toBe(false);
      expect((await first.inspect('stock')).ttlMs).toBeGreaterThan(SHORT_MS);
      expect(await first.renew(owner, 2 * LONG_MS)).toBe(true);
      expect((await first.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
      expect(await first.renew(owner, LONG_MS)).toBe(true); // late: it cuts nothing
      expect((await first.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
      expect(await first.renew(owner, LONG_MS, true)).toBe(true);
      expect((await first.inspect('stock')).ttlMs).toBeLessThanOrEqual(LONG_MS);
    });

    it('releases; the attempt of another one changes nothing', async () => {
      const before = untimed(await first.inspect('stock'));
      expect(await second.release(stranger)).toBe(false);
      expect(untimed(await first.inspect('stock')).holders[0]).toEqual({
        ...before.holders[0],
        ttlMs: expect.any(Number),
      });
      expect(await first.release(owner)).toBe(true);
      expect((await first.inspect('stock')).holders).toEqual([]);
    });

    it('sets the depth', async () => {
      expect(await second.setDepth(stranger, 7, LONG_MS)).toBe(false);
      expect((await first.inspect('stock')).holders[0]?.depth).toBe(1);
    });

    it('is verified', async () => {
      expect(await first.verify(owner)).toBe(true);
      expect(await second.verify(stranger)).toBe(false);
    });

    it('was the owner: after the release nothing of his works any more', async () => {
      await first.release(owner);
      expect(await first.renew(owner, LONG_MS)).toBe(false);
      expect(await first.setDepth(owner, 2, LONG_MS)).toBe(false);
      expect(await first.release(owner)).toBe(false);
      expect(await first.verify(owner)).toBe(false);
      expect((await first.inspect('stock')).mode).toBeNull();
    });

    it('was the owner: after the expiry he cannot touch the lock of the next holder', async () => {
      await first.renew(owner, SHORT_MS, true);
      await subject.pass(SHORT_MS * 2);
      await take(second, stranger);
      expect(await first.renew(owner, LONG_MS)).toBe(false);
      expect(await first.release(owner)).toBe(false);
      expect(await second.verify(stranger)).toBe(true);
    });
  });

  describe.each(['exclusive', 'reentrant', 'read', 'write'] as const)('raiseToken in %s mode', (mode) => {
    it('makes the token of the lease larger, and all that come after it; the lease does not last longer by that', async () => {
      const owner = newOwner(first, 'stock', mode);
      const raised = (await take(first, owner, LONG_MS / 2)) + 3_200_000_000;
      for (const _sent of ['once', 'again']) expect(await first.raiseToken(owner, raised)).toBe(true);
      expect((await first.inspect('stock')).holders).toMatchObject([{ instanceId: 'first', fencingToken: raised }]);
      expect((await first.inspect('stock')).ttlMs).toBeLessThanOrEqual(LONG_MS / 2);
      expect(await first.raiseToken(owner, raised - 64)).toBe(true);
      expect((await first.inspect('stock')).holders[0]!.fencingToken).toBe(raised);
      await first.release(owner);
      expect(await take(second, newOwner(second, 'stock'))).toBeGreaterThan(raised);
    });

    it('is nothing for one who does not hold it, but that tokens are larger from then on', async () => {
      const owner = newOwner(first, 'stock', mode);
      const token = await take(first, owner);
      const raised = token + 3_200_000_000;
      expect(await second.raiseToken(newOwner(second, 'stock', mode), raised)).toBe(false);
      expect((await first.inspect('stock')).holders[0]!.fencingToken).toBe(token);
      await first.release(owner);
      expect(await take(second, newOwner(second, 'stock'))).toBeGreaterThan(raised);
    });
  });

  describe('setDepth', () => {
    it('sets what it is told, however often it is sent', async () => {
      const owner = newOwner(first, 'stock', 'reentrant');
      await take(first, owner);
      for (const depth of [2, 2, 3, 3, 2]) {
        expect(await first.setDepth(owner, depth, LONG_MS)).toBe(true);
        expect((await first.inspect('stock')).holders[0]?.depth).toBe(depth);
      }
    });

    it('makes a lease longer and never shorter', async () => {
      const owner = newOwner(first, 'stock', 'reentrant');
      await take(first, owner, LONG_MS);
      await first.setDepth(owner, 2, SHORT_MS);
      expect((await first.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS / 2);
      await first.setDepth(owner, 2, 2 * LONG_MS);
      expect((await first.inspect('stock')).ttlMs).toBeGreaterThan(LONG_MS);
    });

    it('means nothing for an exclusive lock', async () => {
      const owner = newOwner(first, 'stock');
      await take(first, owner);
      expect(await first.setDepth(owner, 2, LONG_MS)).toBe(false);
    });
  });

  describe('inspect', () => {
    it('shows a free resource as free', async () => {
      expect(await first.inspect('stock')).toEqual({
        resource: 'stock',
        mode: null,
        holders: [],
        ttlMs: 0,
        waiters: [],
      });
    });

    it.each(['exclusive', 'reentrant'] as const)('shows who holds and who waits, and no secret (%s)', async (mode) => {
      const owner = newOwner(first, 'stock', mode);
      const waiter = newOwner(second, 'stock');
      const fencingToken = await take(first, owner);
      await enqueue(second, waiter);
      const state = untimed(await second.inspect('stock'));
      expect(state).toEqual({
        resource: 'stock',
        mode,
        holders: [{ instanceId: 'first', fencingToken, ttlMs: expect.any(Number), depth: 1 }],
        ttlMs: expect.any(Number),
        waiters: [{ instanceId: 'second', mode: 'exclusive' }],
      });
      for (const { id } of [owner, waiter]) {
        expect(JSON.stringify(state)).not.toContain(id.slice(id.indexOf('/') + 1));
      }
    });
  });

  it('rejects every command after close', async () => {
    await first.close();
    const owner = newOwner(first, 'stock');
    const refusal = { name: 'LockStoreError', failure: 'refused', message: expect.stringMatching(/closed/) };
    await expect(first.acquire(owner, LONG_MS)).rejects.toMatchObject(refusal);
    await expect(first.rotate(owner, owner, LONG_MS, PATIENT)).rejects.toMatchObject(refusal);
    await expect(first.release(owner)).rejects.toMatchObject(refusal);
    await expect(first.inspect('stock')).rejects.toMatchObject(refusal);
  });
}
