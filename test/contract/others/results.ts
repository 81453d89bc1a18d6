import assert from 'node:assert/strict';
import type { ResultStore } from '../../../lib/features/once/core/result-store.js';
import type { LockOwner, LockStore } from '../../../lib/kernel/store/lock-store.js';
import { assertEquals } from '../asserts.js';
import { GrantLog } from '../grant-log.js';
import { eventually } from '../../support/expect/eventually.js';
import { LONG_MS, newOwner, SHORT_MS } from '../requests.js';
import type { StoreSubject } from '../subject.js';
import type { Base, Suite } from '../suite.js';

const RESOURCE = 'once:report';

/** One instance, and the results that it sees. */
class Reporter {
  static async open(subject: StoreSubject, instanceId: string): Promise<Reporter> {
    const { locks, results } = await subject.open(instanceId);
    return new Reporter(locks, results!);
  }

  constructor(
    readonly locks: LockStore,
    readonly results: ResultStore,
  ) {}

  read(): Promise<string | undefined> {
    return this.results.read(RESOURCE);
  }

  /** Holds the lock of the work. */
  async working(leaseMs = LONG_MS): Promise<LockOwner> {
    const owner = newOwner(this.locks, RESOURCE);
    const { status } = await this.results.claim(owner, leaseMs);
    assert.equal(status, 'granted');
    return owner;
  }

  async kept(result: string, ttlMs = LONG_MS): Promise<void> {
    assert.equal(await this.results.keep(await this.working(), result, ttlMs), true);
  }

  claim(unreadable?: string) {
    return this.results.claim(newOwner(this.locks, RESOURCE), LONG_MS, unreadable);
  }
}

/** Contract of result stores. */
export function describeResults(suite: Suite<Base>): void {
  const { it } = suite.with(async ({ subject }) => ({
    a: await Reporter.open(subject, 'a'),
    b: await Reporter.open(subject, 'b'),
  }));

  it.onEveryServer('a result is stored and the lock released in one step', async ({ a, b }) => {
    assert.equal(await a.read(), undefined);
    const owner = await a.working();
    assertEquals(await b.locks.list('', 10), [RESOURCE]);
    assert.equal(await a.results.keep(owner, '=1', LONG_MS), true);
    assert.equal(await b.read(), '=1');
    assertEquals(await b.claim(), { status: 'kept', result: '=1' });
    // It is no lock, for operators either.
    assertEquals(await b.locks.list('', 10), []);
    assert.equal((await b.locks.inspect(RESOURCE)).mode, null);
  });

  it('a result is forgotten after its TTL, and leaves nothing', async ({ subject, a, b }) => {
    await a.kept('=1', SHORT_MS);
    assert.equal(await b.read(), '=1');
    await subject.pass(SHORT_MS);
    assert.equal(await b.read(), undefined);
    assert.equal((await b.claim()).status, 'granted');
  });

  it('a result may be any text, and the newest one counts', async ({ a, b }) => {
    for (const text of ['=', '-', `=${'ä€😀\r\n\0"'.repeat(1_000)}`, `=${'x'.repeat(64 * 1_024)}`]) {
      await a.kept(text);
      assert.equal(await b.read(), text);
      await a.results.forget(RESOURCE);
    }
  });

  it.onEveryServer(
    'a claim of a busy lock is answered with its holder, and leaves the queue alone',
    async ({ a, b }) => {
      await a.working();
      const busy = await b.claim();
      assert.equal(busy.status, 'busy');
      assert.equal('seen' in busy && busy.seen?.holders[0]?.instanceId, 'a');
      assertEquals((await a.locks.inspect(RESOURCE)).waiters, []);
    },
  );

  it('a claim that is sent again is granted with the same token', async ({ a }) => {
    const owner = newOwner(a.locks, RESOURCE);
    const [first, again] = [await a.results.claim(owner, LONG_MS), await a.results.claim(owner, LONG_MS)];
    assert.equal(first.status, 'granted');
    assertEquals(again, first);
  });

  it('an owner that does not hold the lock stores nothing', async ({ a, b }) => {
    assert.equal(await a.results.keep(newOwner(a.locks, RESOURCE), '=1', LONG_MS), false);
    const owner = await b.working();
    assert.equal(await a.results.keep(newOwner(a.locks, RESOURCE), '=1', LONG_MS), false);
    assert.equal(await b.read(), undefined);
    assert.equal(await b.locks.verify(owner), true);
  });

  it.onEveryServer('an owner whose lease has ended stores nothing', async ({ subject, a, b }) => {
    const late = await a.working(SHORT_MS);
    await subject.pass(SHORT_MS);
    assert.equal(await a.results.keep(late, '=late', LONG_MS), false);
    assert.equal(await b.read(), undefined);
    await b.kept('=newer');
    assert.equal(await a.results.keep(late, '=late', LONG_MS), false);
    assert.equal(await b.read(), '=newer');
  });

  it('a result is stored once if the command is sent again', async ({ a, b }) => {
    const owner = await a.working();
    assert.equal(await a.results.keep(owner, '=1', LONG_MS), true);
    await b.results.forget(RESOURCE);
    assert.equal(await a.results.keep(owner, '=1', LONG_MS), false);
    assert.equal(await b.read(), undefined);
  });

  it.onEveryServer('callers that wait until the lock is free are told of the result', async ({ a, b }) => {
    const owner = await a.working();
    const heard: string[] = [];
    new GrantLog(b.locks).onFreed = ({ resource }) => heard.push(resource);
    const watcher = { resource: RESOURCE, id: `${b.locks.clientId}/watcher`, mark: 1 };
    assert.equal((await b.locks.watch(watcher, LONG_MS)).isFree, false);
    await a.results.keep(owner, '=1', LONG_MS);
    await eventually(() => assertEquals(heard, [RESOURCE]));
  });

  it('a text that the caller cannot read counts as no result, and no other one does', async ({ a, b }) => {
    await a.kept('={');
    assertEquals(await b.claim('=['), { status: 'kept', result: '={' });
    const owner = newOwner(b.locks, RESOURCE);
    assert.equal((await b.results.claim(owner, LONG_MS, '={')).status, 'granted');
    assert.equal(await b.results.keep(owner, '=1', LONG_MS), true);
    assert.equal(await a.read(), '=1');
  });

  it('a text that no call of once can have stored counts as no result', async ({ a, b }) => {
    await a.kept('another program');
    assert.equal((await b.claim()).status, 'granted');
  });

  it.onEveryServer('a result can be forgotten by a command', async ({ a, b }) => {
    await a.kept('=1');
    await b.results.forget(RESOURCE);
    assert.equal(await a.read(), undefined);
    assert.equal((await a.claim()).status, 'granted');
  });

  it('a run that has begun before its result is forgotten releases its lock, and stores nothing', async ({ a, b }) => {
    const owner = await a.working();
    await b.results.forget(RESOURCE);
    await b.results.forget(RESOURCE);
    assert.equal(await a.read(), undefined);
    assert.equal(await a.results.keep(owner, '=old', LONG_MS), true);
    assert.equal(await a.read(), undefined);
    await b.kept('=new');
    assert.equal(await a.read(), '=new');
  });

  it('a run that begins after one that died was forgotten stores its result', async ({ subject, a, b }) => {
    await a.working(SHORT_MS);
    await b.results.forget(RESOURCE);
    await subject.pass(SHORT_MS);
    await b.kept('=new');
    assert.equal(await a.read(), '=new');
  });
}
