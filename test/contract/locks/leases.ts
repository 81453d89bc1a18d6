import { ACQUIRE_MODES } from '../../../lib/kernel/api/lock-mode.js';
import assert from 'node:assert/strict';
import {
  ANY_NUMBER,
  ANY_VALUE,
  assertAbove,
  assertAtMost,
  assertEquals,
  assertExcludes,
  assertMatches,
} from '../asserts.js';
import { PER_STEP } from '../../../lib/kernel/store/lock-store.js';
import {
  assertGrowing,
  assertSameToken,
  enqueue,
  everyMode,
  LONG_MS,
  newOwner,
  PATIENT,
  SHORT_MS,
  take,
  untimed,
} from '../requests.js';
import type { StoreFeatures } from '../subject.js';
import type { Base, Suite } from '../suite.js';

/** Contract of lock stores: the holder of each lease, and its end. */
export function describeLeases(suite: Suite<Base>, features: StoreFeatures): void {
  const stores = suite.with(async ({ subject }) => {
    const { locks: first } = await subject.open('first');
    const { locks: second } = await subject.open('second');
    return { first, second };
  });
  const { describe, it } = stores;

  describe('acquire', () => {
    it.onEveryServer(
      'grants a free resource, refuses it to every other owner, and says how long the lease lasts',
      async ({ first, second }) => {
        await take(first, newOwner(first, 'stock'));
        const reply = await second.acquire(newOwner(second, 'stock'), LONG_MS);
        assertEquals(reply, { status: 'busy', ttlMs: ANY_NUMBER, seen: ANY_VALUE });
        const { ttlMs } = reply as { ttlMs: number };
        assertAbove(ttlMs, LONG_MS / 2);
        assertAtMost(ttlMs, LONG_MS);
      },
    );

    it.onEveryServer(
      'mints a larger token for every lease of a resource, on every instance',
      async ({ first, second }) => {
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
        assertGrowing(tokens);
        assert.equal(tokens.every(Number.isSafeInteger), true);
      },
    );

    it.onEveryServer(
      'never mints a token below the clock, so that tokens grow even after all data was lost',
      async ({ first }) => {
        const tenMicroseconds = (Date.UTC(2025, 0, 1) - Date.UTC(2020, 0, 1)) * 100;
        const token = await take(first, newOwner(first, 'stock'));
        assertAbove(token, tenMicroseconds * 32);
        assert.equal(token % 64, 0);
      },
    );

    it.onEveryServer(
      'answers a command that is sent again with the same token, and starts the lease anew',
      async ({ subject, first }) => {
        const owner = newOwner(first, 'stock');
        const token = await take(first, owner, SHORT_MS);
        assertSameToken(await take(first, owner, LONG_MS), token, features);
        await subject.pass(SHORT_MS * 2);
        assert.equal(await first.verify(owner), true);
      },
    );

    it('never makes a lease shorter by a command that comes late', async ({ first }) => {
      const owner = newOwner(first, 'stock');
      await take(first, owner, LONG_MS);
      await take(first, owner, SHORT_MS);
      assertAbove((await first.inspect('stock')).ttlMs, LONG_MS / 2);
    });

    it('counts a reentrant command that is sent again as one entry', async ({ first }) => {
      const owner = newOwner(first, 'stock', 'reentrant');
      const token = await take(first, owner);
      assertSameToken(await take(first, owner), token, features);
      assert.equal((await first.inspect('stock')).holders[0]?.depth, 1);
    });

    for (const [held, wanted] of [
      ['exclusive', 'reentrant'],
      ['reentrant', 'exclusive'],
      ['reentrant', 'reentrant'],
    ] as const) {
      it(`keeps a resource held in ${held} mode from another owner in ${wanted} mode`, async ({ first, second }) => {
        const owner = newOwner(first, 'stock', held);
        await take(first, owner);
        const other = newOwner(second, 'stock', wanted);
        assert.equal((await second.acquire(other, LONG_MS)).status, 'busy');
        await first.release(owner);
        assert.equal((await second.acquire(other, LONG_MS)).status, 'granted');
      });
    }

    for (const mode of ['exclusive', 'reentrant'] as const) {
      it.onEveryServer(
        `grants a resource again when the ${mode} lease has expired`,
        async ({ subject, first, second }) => {
          const dead = newOwner(first, 'stock', mode);
          const token = await take(first, dead, SHORT_MS);
          await subject.pass(SHORT_MS * 2);
          assertAbove(await take(second, newOwner(second, 'stock')), token);
          assert.equal(await first.verify(dead), false);
        },
      );
    }
  });

  for (const mode of ['exclusive', 'reentrant'] as const) {
    describe(`in ${mode} mode, only the owner`, () => {
      const { it } = stores.with(async ({ first, second }) => {
        const owner = newOwner(first, 'stock', mode);
        await take(first, owner);
        return { owner, stranger: newOwner(second, 'stock', mode) };
      });

      it.onEveryServer('renews', async ({ second, stranger, first, owner }) => {
        assert.equal(await second.renew(stranger, SHORT_MS), false);
        assertAbove((await first.inspect('stock')).ttlMs, SHORT_MS);
        assert.equal(await first.renew(owner, 2 * LONG_MS), true);
        assertAbove((await first.inspect('stock')).ttlMs, LONG_MS);
        assert.equal(await first.renew(owner, LONG_MS), true); // late: it cuts nothing
        assertAbove((await first.inspect('stock')).ttlMs, LONG_MS);
        assert.equal(await first.renew(owner, LONG_MS, true), true);
        assertAtMost((await first.inspect('stock')).ttlMs, LONG_MS);
      });

      it('releases; the attempt of another owner changes nothing', async ({ first, second, stranger, owner }) => {
        const before = untimed(await first.inspect('stock'));
        assert.equal(await second.release(stranger), false);
        assertEquals(untimed(await first.inspect('stock')).holders[0], {
          ...before.holders[0],
          ttlMs: ANY_NUMBER,
        });
        assert.equal(await first.release(owner), true);
        assertEquals((await first.inspect('stock')).holders, []);
      });

      it('sets the depth', async ({ second, stranger, first }) => {
        assert.equal(await second.setDepth(stranger, 7, LONG_MS), false);
        assert.equal((await first.inspect('stock')).holders[0]?.depth, 1);
      });

      it('is verified', async ({ first, owner, second, stranger }) => {
        assert.equal(await first.verify(owner), true);
        assert.equal(await second.verify(stranger), false);
      });

      it('was the owner: after the release none of its commands changes anything', async ({ first, owner }) => {
        await first.release(owner);
        assert.equal(await first.renew(owner, LONG_MS), false);
        assert.equal(await first.setDepth(owner, 2, LONG_MS), false);
        assert.equal(await first.release(owner), false);
        assert.equal(await first.verify(owner), false);
        assert.equal((await first.inspect('stock')).mode, null);
      });

      it('was the owner: after the expiry it cannot touch the lock of the next holder', async ({
        subject,
        first,
        owner,
        second,
        stranger,
      }) => {
        await first.renew(owner, SHORT_MS, true);
        await subject.pass(SHORT_MS * 2);
        await take(second, stranger);
        assert.equal(await first.renew(owner, LONG_MS), false);
        assert.equal(await first.release(owner), false);
        assert.equal(await second.verify(stranger), true);
      });
    });
  }

  it.onEveryServer('renews many leases of one turn of the event loop, each for itself', async ({ first, second }) => {
    const own = everyMode(features).map((wish) => ({ ...newOwner(first, `own:${wish.mode}`), ...wish }));
    for (let i = own.length; i <= PER_STEP; i++) own.push(newOwner(first, `own:${i}`));
    for (const owner of own) await take(first, owner, LONG_MS);
    await take(second, newOwner(second, 'foreign'), LONG_MS);
    const asked = [own[0]!, newOwner(first, 'foreign'), own[1]!, newOwner(first, 'foreign'), ...own.slice(2)];
    const replies = await Promise.all(asked.map((owner) => first.renew(owner, 2 * LONG_MS)));
    assertEquals(
      replies,
      asked.map((owner) => own.includes(owner)),
    );
    for (const { resource } of own) assertAbove((await first.inspect(resource)).holders[0]!.ttlMs, LONG_MS);
    assertAtMost((await first.inspect('foreign')).ttlMs, LONG_MS);
  });

  for (const mode of ACQUIRE_MODES) {
    describe(`raiseToken in ${mode} mode`, () => {
      it.onEveryServer(
        'makes the token of the lease larger, and all later ones; the lease does not get longer',
        async ({ first, second }) => {
          const owner = newOwner(first, 'stock', mode);
          const raised = (await take(first, owner, LONG_MS / 2)) + 3_200_000_000;
          for (const _sent of ['once', 'again']) assert.equal(await first.raiseToken(owner, raised), true);
          assertMatches((await first.inspect('stock')).holders, [{ instanceId: 'first', fencingToken: raised }]);
          assertAtMost((await first.inspect('stock')).ttlMs, LONG_MS / 2);
          assert.equal(await first.raiseToken(owner, raised - 64), true);
          assert.equal((await first.inspect('stock')).holders[0]!.fencingToken, raised);
          await first.release(owner);
          assertAbove(await take(second, newOwner(second, 'stock')), raised);
        },
      );

      it('returns false for another owner, but later tokens are larger all the same', async ({ first, second }) => {
        const owner = newOwner(first, 'stock', mode);
        const token = await take(first, owner);
        const raised = token + 3_200_000_000;
        assert.equal(await second.raiseToken(newOwner(second, 'stock', mode), raised), false);
        assert.equal((await first.inspect('stock')).holders[0]!.fencingToken, token);
        await first.release(owner);
        assertAbove(await take(second, newOwner(second, 'stock')), raised);
      });
    });
  }

  describe('setDepth', () => {
    it.onEveryServer('sets what it is told, however often it is sent', async ({ first }) => {
      const owner = newOwner(first, 'stock', 'reentrant');
      await take(first, owner);
      for (const depth of [2, 2, 3, 3, 2]) {
        assert.equal(await first.setDepth(owner, depth, LONG_MS), true);
        assert.equal((await first.inspect('stock')).holders[0]?.depth, depth);
      }
    });

    it('makes a lease longer and never shorter', async ({ first }) => {
      const owner = newOwner(first, 'stock', 'reentrant');
      await take(first, owner, LONG_MS);
      await first.setDepth(owner, 2, SHORT_MS);
      assertAbove((await first.inspect('stock')).ttlMs, LONG_MS / 2);
      await first.setDepth(owner, 2, 2 * LONG_MS);
      assertAbove((await first.inspect('stock')).ttlMs, LONG_MS);
    });

    it('returns false for an exclusive lock', async ({ first }) => {
      const owner = newOwner(first, 'stock');
      await take(first, owner);
      assert.equal(await first.setDepth(owner, 2, LONG_MS), false);
    });
  });

  describe('inspect', () => {
    it('shows a free resource as free', async ({ first }) => {
      assertEquals(await first.inspect('stock'), {
        resource: 'stock',
        mode: null,
        holders: [],
        ttlMs: 0,
        waiters: [],
      });
    });

    for (const mode of ['exclusive', 'reentrant'] as const) {
      it.onEveryServer(`shows holders and waiters, and no secret (${mode})`, async ({ first, second }) => {
        const owner = newOwner(first, 'stock', mode);
        const waiter = newOwner(second, 'stock');
        const fencingToken = await take(first, owner);
        await enqueue(second, waiter);
        const state = untimed(await second.inspect('stock'));
        assertEquals(state, {
          resource: 'stock',
          mode,
          holders: [{ instanceId: 'first', fencingToken, ttlMs: ANY_NUMBER, depth: 1 }],
          ttlMs: ANY_NUMBER,
          waiters: [{ instanceId: 'second', mode: 'exclusive' }],
        });
        for (const { id } of [owner, waiter]) {
          assertExcludes(JSON.stringify(state), id.slice(id.indexOf('/') + 1));
        }
      });
    }
  });

  it.onEveryServer('rejects every command after close', async ({ first }) => {
    await first.close();
    const owner = newOwner(first, 'stock');
    const refusal = { name: 'LockStoreError', failure: 'refused', message: /closed/ };
    await assert.rejects(first.acquire(owner, LONG_MS), refusal);
    await assert.rejects(first.rotate(owner, owner, LONG_MS, PATIENT), refusal);
    await assert.rejects(first.release(owner), refusal);
    await assert.rejects(first.inspect('stock'), refusal);
  });
}
