import assert from 'node:assert/strict';
import type { OperatorRequest } from '../../../lib/kernel/store/message-health.js';
import type { JobStore, OperatorRequestChange } from '../../../lib/features/jobs/core/job-store.js';
import { assertEquals } from '../asserts.js';
import { eventually } from '../../support/expect/eventually.js';
import { LONG_MS, SHORT_MS } from '../requests.js';
import type { StoreSubject } from '../subject.js';
import type { Base, Suite } from '../suite.js';
import { JOB } from './job-world.js';

const REQUEST: OperatorRequest = { resource: JOB, id: 'a'.repeat(22) };

async function openInstance(subject: StoreSubject, instanceId: string) {
  const { locks, jobs } = await subject.open(instanceId);
  const heard: OperatorRequest[] = [];
  locks.listen({ granted: () => {}, reconnected: () => {}, asked: (request) => void heard.push(request) });
  const { request } = jobs;
  const store = jobs as JobStore;
  const change = (changes: OperatorRequestChange, asked = REQUEST): Promise<string> => store.request!(asked, changes);
  return { canRequest: request !== undefined, change, heard };
}

/** Contract of job stores that forward the requests of operators. */
export function describeOperatorRequests(suite: Suite<Base>): void {
  const { describe } = suite;

  describe('a request of an operator', () => {
    const { it } = suite
      .with(async ({ subject }) => ({
        one: await openInstance(subject, 'one'),
        two: await openInstance(subject, 'two'),
      }))
      .where(({ one }) => one.canRequest);

    it.onEveryServer('is announced to all instances, and one of them takes it', async ({ one, two }) => {
      assert.equal(await two.change({}), '');
      assert.equal(await one.change({ to: 'asked', ttlMs: LONG_MS, tells: true }), 'asked');
      await eventually(() => assertEquals([one.heard, two.heard], [[REQUEST], [REQUEST]]));
      assert.equal(await two.change({}), 'asked');
      const taken = await Promise.all(
        [one, two].map(({ change }, index) => change({ from: 'asked', to: `taken ${index}`, ttlMs: LONG_MS })),
      );
      assert.equal(new Set(taken).size, 1);
      // A command that was sent again.
      assert.equal(await one.change({ from: 'asked', to: taken[0]!, ttlMs: LONG_MS }), taken[0]);
      // Neither asked again, nor taken back.
      assert.equal(await one.change({ to: 'asked', ttlMs: LONG_MS, tells: true }), taken[0]);
      assert.equal(await one.change({ from: 'asked', to: 'gone', ttlMs: LONG_MS }), taken[0]);
    });

    it('is announced again while it is open, and is another one under another id', async ({ one, two }) => {
      const other = { ...REQUEST, id: 'b'.repeat(22) };
      await one.change({ to: 'asked', ttlMs: LONG_MS, tells: true });
      await one.change({ to: 'asked', ttlMs: LONG_MS, tells: true });
      await one.change({ to: 'too', ttlMs: LONG_MS, tells: true }, other);
      await eventually(() => assertEquals(two.heard, [REQUEST, REQUEST, other]));
      assert.equal(await two.change({}), 'asked');
    });

    it('cannot be taken once it was taken back, or its time is over', async ({ subject, one, two }) => {
      await one.change({ to: 'asked', ttlMs: LONG_MS });
      assert.equal(await one.change({ from: 'asked', to: 'gone', ttlMs: LONG_MS }), 'gone');
      assert.equal(await two.change({ from: 'asked', to: 'taken', ttlMs: LONG_MS }), 'gone');
      const late = { ...REQUEST, id: 'b'.repeat(22) };
      await one.change({ to: 'asked', ttlMs: SHORT_MS }, late);
      await subject.pass(2 * SHORT_MS);
      assert.equal(await two.change({ from: 'asked', to: 'taken', ttlMs: LONG_MS }, late), '');
      assertEquals([one.heard, two.heard], [[], []]);
    });
  });
}
