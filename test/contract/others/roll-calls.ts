import assert from 'node:assert/strict';
import type { RollCall, RollCalls } from '../../../lib/kernel/store/message-health.js';
import { ANY_NUMBER, assertAtLeast, assertAtMost, assertContains, assertEquals, assertMatches } from '../asserts.js';
import { eventually } from '../../support/expect/eventually.js';
import type { StoreSubject } from '../subject.js';
import type { Base, Suite } from '../suite.js';

/** The minimum interval of roll calls, and the lifetime of their answers, plus a margin. */
const NEXT_MS = 1_050;
const KEPT_MS = 5_050;

/** As the client sends it: a name of its own for each. */
function rollCall(letter: string, scope = ''): RollCall {
  return { nonce: letter.repeat(22), scope };
}

async function openInstance(subject: StoreSubject, instanceId: string) {
  const { locks } = await subject.open(instanceId);
  const heard: RollCall[] = [];
  locks.listen({ granted: () => {}, reconnected: () => {}, called: (call) => void heard.push(call) });
  // Not used where the store has none.
  return { rollCalls: locks.rollCalls!, clientId: locks.clientId, heard };
}

interface World extends Base {
  readonly one: { readonly rollCalls: RollCalls; readonly clientId: string; readonly heard: readonly RollCall[] };
  readonly two: World['one'];
}

/** Contract of lock stores with roll calls. */
export function describeRollCalls(suite: Suite<Base>): void {
  const { it } = suite
    .with(async ({ subject }): Promise<Pick<World, 'one' | 'two'>> => ({
      one: await openInstance(subject, 'one'),
      two: await openInstance(subject, 'two'),
    }))
    .where(({ one }) => one.rollCalls !== undefined);

  it.onEveryServer('is heard by all instances, which answer once, and it says how many were asked', async (world) => {
    const { one, two } = world;
    const call = rollCall('a', '["order:"]');
    const standing = await one.rollCalls.call(call);
    assertMatches(standing, { ...call, askedAt: ANY_NUMBER });
    // A store may have further clients.
    if (standing.asked !== undefined) assertAtLeast(standing.asked, 2);
    await eventually(() => assertEquals([one.heard, two.heard], [[call], [call]]));
    assert.equal(await one.rollCalls.count(call.nonce), 0);
    assert.equal(await one.rollCalls.answer(call.nonce, 'of one'), true);
    assert.equal(await two.rollCalls.answer(call.nonce, 'of two'), true);
    // The answer to a command that was sent again.
    assert.equal(await two.rollCalls.answer(call.nonce, 'of two'), true);
    assert.equal(await one.rollCalls.count(call.nonce), 2);
    const answers = await two.rollCalls.read(call.nonce);
    assertEquals([answers.size, answers.get(one.clientId), answers.get(two.clientId)], [2, 'of one', 'of two']);
  });

  it('is shared by all that ask within a second, and a later one is new', async ({ subject, one, two }) => {
    const first = await one.rollCalls.call(rollCall('a'));
    // Sent again, because its reply was lost.
    assertMatches(await one.rollCalls.call(rollCall('a')), { nonce: first.nonce, askedAt: first.askedAt });
    const shared = await two.rollCalls.call(rollCall('b', '["other"]'));
    assertMatches(shared, { nonce: first.nonce, scope: '', askedAt: first.askedAt });
    assertAtMost(shared.ageMs, 1_000);
    await subject.pass(NEXT_MS);
    assertMatches(await two.rollCalls.call(rollCall('b')), rollCall('b'));
    await eventually(() => assertEquals([one.heard.length, two.heard.length], [2, 2]));
  });

  it('takes no answer once another one stands, nor to one that no client has begun', async ({ subject, one, two }) => {
    await one.rollCalls.call(rollCall('a'));
    assert.equal(await two.rollCalls.answer(rollCall('x').nonce, 'forged'), false);
    await subject.pass(NEXT_MS);
    await one.rollCalls.call(rollCall('b'));
    assert.equal(await two.rollCalls.answer(rollCall('a').nonce, 'late'), false);
    assertEquals([...(await one.rollCalls.read(rollCall('x').nonce))], []);
    assert.equal(await one.rollCalls.count(rollCall('a').nonce), 0);
  });

  it('is forgotten with its answers after five seconds', async ({ subject, one, two }) => {
    const { nonce } = rollCall('a');
    await one.rollCalls.call(rollCall('a'));
    await two.rollCalls.answer(nonce, 'of two');
    await subject.pass(KEPT_MS);
    assert.equal(await one.rollCalls.count(nonce), 0);
    assert.equal(await two.rollCalls.answer(nonce, 'too late'), false);
  });

  it.onEveryServer('keeps the newest report of an instance that hears none', async ({ one, two }) => {
    await one.rollCalls.leave('first');
    await one.rollCalls.leave('second');
    await two.rollCalls.leave('of two');
    const reports = await two.rollCalls.reports();
    assertEquals([...reports.keys()].sort(), [one.clientId, two.clientId].sort());
    assertMatches(reports.get(one.clientId)!, { at: ANY_NUMBER, report: 'second' });
  });

  it('forgets the report of an instance that has died, while others leave theirs', async ({ subject, one, two }) => {
    await two.rollCalls.leave('of two');
    for (let left = 0; left < 3; left++) {
      await subject.pass(KEPT_MS / 2);
      await one.rollCalls.leave('of one');
    }
    assertEquals([...(await one.rollCalls.reports()).keys()], [one.clientId]);
    await subject.pass(KEPT_MS);
    assert.equal((await one.rollCalls.reports()).size, 0);
  });

  it('knows which instances are connected, where it can tell', async ({ subject, one, two }) => {
    const connected = await one.rollCalls.connected();
    if (connected === undefined) return;
    assertContains(connected, [one.clientId, two.clientId]);
    await subject.kill('two');
    const left = (await one.rollCalls.connected()) ?? [];
    assertContains(left, [one.clientId]);
    assert.equal(left.includes(two.clientId), false);
  });
}
