import type { LatchStore, LatchSpec } from '../../../lib/core/store/latch-store.js';
import { eventually } from '../../support/expect/eventually.js';
import { LONG_MS, SHORT_MS, type Subject } from '../subjects/subject.js';

const TERMS: LatchSpec = { name: 'import', count: 3, ttlMs: LONG_MS };

/** What every latch store keeps to. */
export function describeLatchStore(createSubject: () => Promise<Subject>): void {
  let subject: Subject;
  let latches: LatchStore;
  let others: LatchStore;
  let heard: string[];
  let heardByOthers: string[];

  beforeEach(async () => {
    subject = await createSubject();
    latches = (await subject.open('one')).latches;
    others = (await subject.open('two')).latches;
    heard = listenTo(latches);
    heardByOthers = listenTo(others);
  });
  afterEach(() => subject.close());

  function listenTo(store: LatchStore): string[] {
    const messages: string[] = [];
    store.listen({
      opened: (name, count) => void messages.push(`${count} ${name}`),
      reconnected: () => {},
    });
    return messages;
  }
  const countDown = async (...ids: string[]) => {
    let state = await latches.read(TERMS);
    for (const id of ids) state = await latches.countDown(TERMS, id);
    return state;
  };

  it('lacks all of its count-downs while nobody has used it, and looking does not create it', async () => {
    expect(await latches.read(TERMS)).toEqual({ count: 3, remaining: 3, ttlMs: 0 });
    expect(await subject.isEmpty()).toBe(true);
  });

  it('is announced to one listener: a second one is refused', () => {
    expect(() => listenTo(latches)).toThrow('this store already has a listener');
  });

  it('is counted down by whoever, and opens with the last one', async () => {
    expect(await latches.countDown(TERMS, 'a')).toEqual({ count: 3, remaining: 2, ttlMs: expect.any(Number) });
    expect(await others.countDown(TERMS, 'b')).toMatchObject({ remaining: 1 });
    expect(await others.read(TERMS)).toMatchObject({ remaining: 1 });
    expect(await latches.countDown(TERMS, 'c')).toMatchObject({ remaining: 0 });
    expect(await others.read(TERMS)).toMatchObject({ count: 3, remaining: 0 });
  });

  it('counts an id once, whoever sends it', async () => {
    await countDown('a', 'a');
    expect(await others.countDown(TERMS, 'a')).toMatchObject({ remaining: 2 });
    for (const id of ['count', 'open', '+a', '__proto__', ' ', 'a b', 'nul\0', '🔒']) {
      const terms = { ...TERMS, name: `of ${id}` };
      expect(await latches.countDown(terms, id)).toMatchObject({ remaining: 2 });
      expect(await latches.countDown(terms, id)).toMatchObject({ remaining: 2 });
    }
  });

  it('stays open when it is counted on', async () => {
    await countDown('a', 'b', 'c');
    expect(await countDown('c', 'd')).toMatchObject({ count: 3, remaining: 0 });
    expect(await latches.wait(TERMS, LONG_MS)).toMatchObject({ remaining: 0 });
  });

  it('tells each client that waits when it opens, once', async () => {
    expect(await latches.wait(TERMS, LONG_MS)).toMatchObject({ count: 3, remaining: 3 });
    await latches.wait(TERMS, LONG_MS);
    await others.wait(TERMS, LONG_MS);
    await countDown('a', 'b');
    expect([heard, heardByOthers]).toEqual([[], []]);
    await countDown('c', 'c', 'd');
    await eventually(() => expect([heard, heardByOthers]).toEqual([['3 import'], ['3 import']]));
  });

  it('tells nobody who does not wait, whose place is over, or whose process has died', async () => {
    const dead = (await subject.open('dead')).latches;
    const heardByDead = listenTo(dead);
    await dead.wait(TERMS, LONG_MS);
    await subject.kill('dead');
    await others.wait(TERMS, SHORT_MS);
    await latches.wait(TERMS, LONG_MS);
    await subject.pass(SHORT_MS * 2);
    await countDown('a', 'b', 'c');
    await eventually(() => expect(heard).toEqual(['3 import']));
    expect([heardByOthers, heardByDead]).toEqual([[], []]);
  });

  it('changes nothing for one who states another count', async () => {
    const wrong = { ...TERMS, count: 2 };
    await countDown('a');
    expect(await others.countDown(wrong, 'b')).toMatchObject({ count: 3, remaining: 2 });
    expect(await others.wait(wrong, LONG_MS)).toMatchObject({ count: 3, remaining: 2 });
    expect(await others.read(wrong)).toMatchObject({ count: 3, remaining: 2 });
    expect(await countDown('b', 'c')).toMatchObject({ count: 3, remaining: 0 });
    expect(await others.countDown(wrong, 'x')).toMatchObject({ count: 3, remaining: 0 });
    expect(heardByOthers).toEqual([]);
  });

  it('lives as long as its creator said, however often it is used, and its name can be used again', async () => {
    const brief = { ...TERMS, ttlMs: 2_000 };
    await latches.wait(brief, 100);
    await subject.pass(100);
    await others.countDown({ ...TERMS, ttlMs: LONG_MS }, 'a');
    const { ttlMs } = await latches.wait(brief, 100);
    expect(ttlMs).toBeLessThanOrEqual(1_900);
    await subject.pass(ttlMs + 20);
    expect(await latches.read(TERMS)).toMatchObject({ remaining: 3, ttlMs: 0 });
    expect(await latches.countDown({ ...TERMS, count: 1 }, 'a')).toMatchObject({ count: 1, remaining: 0 });
  });

  it('leaves nothing after its TTL: neither itself nor those who waited', async () => {
    const brief = { ...TERMS, ttlMs: SHORT_MS };
    await latches.countDown(brief, 'a');
    await latches.wait({ ...brief, name: 'other' }, SHORT_MS);
    for (const id of ['a', 'b', 'c']) await latches.countDown({ ...brief, name: 'open' }, id);
    await subject.pass(SHORT_MS * 2);
    expect(await subject.isEmpty()).toBe(true);
  });

  it('stays open for those who wait until their places are over, also where its TTL ends before', async () => {
    const brief = { ...TERMS, ttlMs: 1_500 };
    await latches.wait(brief, 10_000);
    const states = [];
    for (const id of ['a', 'b', 'c']) states.push(await others.countDown(brief, id));
    expect(states[1]!.ttlMs).toBeLessThanOrEqual(1_500);
    expect(states[2]!.ttlMs).toBeGreaterThan(1_500);
    await subject.pass(1_600);
    expect(await latches.wait(brief, 10_000)).toMatchObject({ remaining: 0 });
  });

  it('keeps latches, and the locks of the same names, apart', async () => {
    const { store } = await subject.open('three');
    for (const name of ['import', 'import:latch', 'import}:latch', 'im port', 'import\n', '1 2 import']) {
      expect(await latches.countDown({ ...TERMS, name, count: 2 }, 'a')).toMatchObject({ remaining: 1 });
      const owner = `${store.clientId}/${name}`.replace(/\s/g, '');
      expect(await store.acquire({ resource: name, id: owner, mode: 'exclusive' }, LONG_MS)).toMatchObject({
        status: 'granted',
      });
    }
  });

  it('tells of the latch by its name, whatever that is', async () => {
    const names = ['1 2 import', 'one/x 1 2 import', ' ', '%7B', '{a}', 'line\nbreak', '\u2028', 'latch 1 x', '🔒'];
    for (const name of names) {
      await latches.wait({ ...TERMS, name, count: 1 }, LONG_MS);
      await others.countDown({ ...TERMS, name, count: 1 }, 'a');
    }
    // On a cluster they come by way of different nodes.
    await eventually(() => expect(heard.toSorted()).toEqual(names.map((name) => `1 ${name}`).toSorted()));
  });
}
