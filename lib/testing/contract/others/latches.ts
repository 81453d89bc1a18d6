import assert from 'node:assert/strict';
import type { LatchSpec, LatchState, LatchStore } from '../../../core/store/latch-store.js';
import { ANY_NUMBER, assertAbove, assertAtMost, assertEquals, assertMatches } from '../asserts.js';
import { eventually } from '../eventually.js';
import { openedPart } from '../opened-part.js';
import { LONG_MS, SHORT_MS } from '../requests.js';
import type { StoreSubject } from '../subject.js';
import type { Base, Suite } from '../suite.js';

const IMPORT: LatchSpec = { name: 'import', count: 3, ttlMs: LONG_MS };

interface OpenedLatches {
  readonly store: LatchStore;
  /** The messages of latches that open. */
  readonly heard: readonly string[];
}

async function openLatches(subject: StoreSubject, instanceId: string): Promise<OpenedLatches> {
  const { locks, latches } = await subject.open(instanceId);
  const heard: string[] = [];
  locks.listen({
    granted: () => {},
    opened: (name, count) => void heard.push(`${count} ${name}`),
    reconnected: () => {},
  });
  return { store: openedPart(latches, 'latches'), heard };
}

/** What every latch store keeps to. */
export function describeLatches(suite: Suite<Base>): void {
  const { it } = suite.with(async ({ subject }) => {
    const { store: latches, heard } = await openLatches(subject, 'one');
    const { store: others, heard: heardByOthers } = await openLatches(subject, 'two');
    const countDown = async (...ids: string[]): Promise<LatchState> => {
      let state = await latches.read(IMPORT);
      for (const id of ids) state = await latches.countDown(IMPORT, id);
      return state;
    };
    return { latches, others, heard, heardByOthers, countDown };
  });

  it('lacks all of its count-downs until it is used, and reading does not create it', async ({ subject, latches }) => {
    assertEquals(await latches.read(IMPORT), { count: 3, remaining: 3, ttlMs: 0 });
    assert.equal(await subject.isEmpty(), true);
  });

  it.onEveryServer('is counted down by any client, and opens with the last count-down', async ({ latches, others }) => {
    assertEquals(await latches.countDown(IMPORT, 'a'), { count: 3, remaining: 2, ttlMs: ANY_NUMBER });
    assertMatches(await others.countDown(IMPORT, 'b'), { remaining: 1 });
    assertMatches(await others.read(IMPORT), { remaining: 1 });
    assertMatches(await latches.countDown(IMPORT, 'c'), { remaining: 0 });
    assertMatches(await others.read(IMPORT), { count: 3, remaining: 0 });
  });

  it('counts an id once, on every instance', async ({ countDown, others, latches }) => {
    await countDown('a', 'a');
    assertMatches(await others.countDown(IMPORT, 'a'), { remaining: 2 });
    for (const id of ['count', 'open', '+a', '__proto__', ' ', 'a b', 'nul\0', '🔒']) {
      const terms = { ...IMPORT, name: `of ${id}` };
      assertMatches(await latches.countDown(terms, id), { remaining: 2 });
      assertMatches(await latches.countDown(terms, id), { remaining: 2 });
    }
  });

  it('stays open when it is counted on', async ({ countDown, latches }) => {
    await countDown('a', 'b', 'c');
    assertMatches(await countDown('c', 'd'), { count: 3, remaining: 0 });
    assertMatches(await latches.wait(IMPORT, LONG_MS), { remaining: 0 });
  });

  it.onEveryServer(
    'tells each client that waits when it opens, once',
    async ({ latches, others, countDown, heard, heardByOthers }) => {
      assertMatches(await latches.wait(IMPORT, LONG_MS), { count: 3, remaining: 3 });
      await latches.wait(IMPORT, LONG_MS);
      await others.wait(IMPORT, LONG_MS);
      await countDown('a', 'b');
      assertEquals([heard, heardByOthers], [[], []]);
      await countDown('c', 'c', 'd');
      await eventually(() => assertEquals([heard, heardByOthers], [['3 import'], ['3 import']]));
    },
  );

  it.onEveryServer(
    'tells no client that does not wait, whose place is over, or whose process has died',
    async ({ subject, others, latches, countDown, heard, heardByOthers }) => {
      const { store: dead, heard: heardByDead } = await openLatches(subject, 'dead');
      await dead.wait(IMPORT, LONG_MS);
      await subject.kill('dead');
      await others.wait(IMPORT, SHORT_MS);
      await latches.wait(IMPORT, LONG_MS);
      await subject.pass(SHORT_MS * 2);
      await countDown('a', 'b', 'c');
      await eventually(() => assertEquals(heard, ['3 import']));
      assertEquals([heardByOthers, heardByDead], [[], []]);
    },
  );

  it('changes nothing for a client that states another count', async ({ countDown, others, heardByOthers }) => {
    const wrong = { ...IMPORT, count: 2 };
    await countDown('a');
    assertMatches(await others.countDown(wrong, 'b'), { count: 3, remaining: 2 });
    assertMatches(await others.wait(wrong, LONG_MS), { count: 3, remaining: 2 });
    assertMatches(await others.read(wrong), { count: 3, remaining: 2 });
    assertMatches(await countDown('b', 'c'), { count: 3, remaining: 0 });
    assertMatches(await others.countDown(wrong, 'x'), { count: 3, remaining: 0 });
    assertEquals(heardByOthers, []);
  });

  it('lives as long as its creator said, however often it is used, and its name can be used again', async ({
    subject,
    latches,
    others,
  }) => {
    const brief = { ...IMPORT, ttlMs: 2_000 };
    await latches.wait(brief, 100);
    await subject.pass(100);
    await others.countDown({ ...IMPORT, ttlMs: LONG_MS }, 'a');
    const { ttlMs } = await latches.wait(brief, 100);
    assertAtMost(ttlMs, 1_900);
    await subject.pass(ttlMs + 20);
    assertMatches(await latches.read(IMPORT), { remaining: 3, ttlMs: 0 });
    assertMatches(await latches.countDown({ ...IMPORT, count: 1 }, 'a'), { count: 1, remaining: 0 });
  });

  it('leaves nothing after its TTL: neither itself nor its waiters', async ({ subject, latches }) => {
    const brief = { ...IMPORT, ttlMs: SHORT_MS };
    await latches.countDown(brief, 'a');
    await latches.wait({ ...brief, name: 'other' }, SHORT_MS);
    for (const id of ['a', 'b', 'c']) await latches.countDown({ ...brief, name: 'open' }, id);
    await subject.pass(SHORT_MS * 2);
    assert.equal(await subject.isEmpty(), true);
  });

  it('stays open for its waiters until their places are over, also if its TTL ends before', async ({
    subject,
    latches,
    others,
  }) => {
    const brief = { ...IMPORT, ttlMs: 1_500 };
    await latches.wait(brief, 10_000);
    const states = [];
    for (const id of ['a', 'b', 'c']) states.push(await others.countDown(brief, id));
    assertAtMost(states[1]!.ttlMs, 1_500);
    assertAbove(states[2]!.ttlMs, 1_500);
    await subject.pass(1_600);
    assertMatches(await latches.wait(brief, 10_000), { remaining: 0 });
  });

  it.onEveryServer('keeps latches, and the locks of the same names, apart', async ({ subject, latches }) => {
    const { locks: store } = await subject.open('three');
    for (const name of ['import', 'import:latch', 'import}:latch', 'im port', 'import\n', '1 2 import']) {
      assertMatches(await latches.countDown({ ...IMPORT, name, count: 2 }, 'a'), { remaining: 1 });
      const owner = `${store.clientId}/${name}`.replace(/\s/g, '');
      assertMatches(await store.acquire({ resource: name, id: owner, mode: 'exclusive' }, LONG_MS), {
        status: 'granted',
      });
    }
  });

  it.onEveryServer('tells of the latch by its name, for any name', async ({ latches, others, heard }) => {
    const names = ['1 2 import', 'one/x 1 2 import', ' ', '%7B', '{a}', 'line\nbreak', '\u2028', 'latch 1 x', '🔒'];
    for (const name of names) {
      await latches.wait({ ...IMPORT, name, count: 1 }, LONG_MS);
      await others.countDown({ ...IMPORT, name, count: 1 }, 'a');
    }
    // On a cluster they come by way of different nodes.
    await eventually(() => assertEquals(heard.toSorted(), names.map((name) => `1 ${name}`).toSorted()));
  });
}
