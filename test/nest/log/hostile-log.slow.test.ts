import { jest } from '@jest/globals';
import { ConsoleLogger, Logger } from '@nestjs/common';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import { loggerOf } from '../../../lib/nest/log/logger-of.js';
import { fitting, HOSTILE_TEXTS, unsafeIn } from '../../support/expect/hostile-texts.js';
import { rejection } from '../../support/expect/eventually.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

const TEXTS = Object.entries(HOSTILE_TEXTS);

describe.each(TEXTS)('what reaches the terminal of %s', (_what, text) => {
  const name = fitting(text, 490);
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let closing: AbortController;
  let written: string;

  const fail = (): never => {
    throw new Error(text);
  };
  const refused = () => Promise.reject(new LockStoreError('refused', text));

  beforeEach(() => {
    written = '';
    for (const stream of [process.stdout, process.stderr]) {
      jest.spyOn(stream, 'write').mockImplementation((chunk) => {
        // Node's own warnings are no part of it.
        if (!/^\((node:|Use `node)/.test(String(chunk))) written += String(chunk);
        return true;
      });
    }
    Logger.overrideLogger(new ConsoleLogger({ colors: false }));
    world = new LockWorld();
    closing = new AbortController();
    const warn = (line: string): void => loggerOf('default').warn(line);
    a = world.instance('a', { group: fail, telemetry: [{ start: fail }], warn });
    b = world.instance('b');
    new LockEventLog('default', world.clock).listenTo(a.locks.observers, closing.signal, () => 1);
  });

  afterEach(() => {
    Logger.overrideLogger(false);
    jest.restoreAllMocks();
  });

  /** Each line that was written: of Nest, or a frame of a stack. */
  function lines(): string[] {
    closing.abort();
    const all = written.split('\n').slice(0, -1);
    for (const line of all) {
      expect(unsafeIn(line)).toBeUndefined();
      expect(line).toMatch(/^(\[Nest\] \d+ {2}- |Error\b| {4}at )/);
    }
    return all.filter((line) => line.startsWith('[Nest]'));
  }

  it('who holds it while calls wait, and what was held for long', async () => {
    const label = { group: fitting(text, 60), [fitting(text, 60)]: fitting(text, 40) };
    const held = await b.locks.acquire(name, { label: JSON.stringify(label).length < 256 ? label : { group: 'cut' } });
    const waiting = a.locks.acquire(name, { waitMs: 60_000, warnAfterMs: 1_000 });
    const alsoWaiting = rejection(a.locks.acquire(`${name}2`, { waitMs: 0 })).catch(() => {});
    await world.clock.advance(6_000);
    await held.release();
    await settle();
    const lease = await waiting;
    await alsoWaiting;
    await world.clock.advance(70_000);
    await b.locks.operators.forceRelease(name, { fencingToken: lease.fencingToken });
    await world.clock.advance(20_000);
    const logged = lines();
    for (const told of [/Waiting for "/, /has been held for/, /is no longer held/, /option group threw/]) {
      expect(logged).toContainEqual(expect.stringMatching(told));
    }
  });

  it('why Redis did not do it', async () => {
    const lease = await a.locks.acquire(name, { leaseMs: 9_000 });
    a.store.all(refused);
    await world.clock.advance(4_000);
    await lease.release().catch(() => {});
    await world.clock.advance(70_000);
    const logged = lines();
    expect(logged).toContainEqual(expect.stringMatching(/could not renew/));
    expect(logged).toContainEqual(expect.stringMatching(/could not release/));
  });

  it('which leadership and job it is, and what their callbacks threw', async () => {
    // Its value has no text at all.
    const failSilently = (): never => {
      throw Object.create(null);
    };
    for (const onElected of [fail, failSilently]) {
      const leadership = a.locks.campaign(name, { onElected });
      await settle();
      await leadership.resign();
    }
    const skipped = { service: 'default', type: 'tickSkipped', job: name, tick: name, group: 'job' } as const;
    a.locks.observers.emit({ ...skipped, reason: 'late', lateMs: 9_000, clockBehindMs: 9_000 });
    a.locks.observers.emit({ ...skipped, reason: 'crashed', attempts: 3 });
    const logged = lines();
    expect(logged).toContainEqual(expect.stringMatching(/onElected of the campaign for ".* threw/));
    expect(logged).toContainEqual(
      expect.stringMatching(/threw\. The campaign continues\. a value that cannot be shown$/),
    );
    expect(logged).toContainEqual(expect.stringMatching(/Leads "/));
    expect(logged).toContainEqual(expect.stringMatching(/is skipped/));
    expect(logged).toContainEqual(expect.stringMatching(/ ERROR .*none of 3 runs of its tick .*maxReruns: 2/));
  });
});
