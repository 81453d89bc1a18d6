import { PassThrough, Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Observable, of } from 'rxjs';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { Fleet } from '../../support/world/singleton-fleet.js';

let runs = 0;
const rows = (): Readable => Readable.from(['row']);

/** Results whose work runs when something reads them, each with its name in the message. */
const UNFINISHED: [string, () => object][] = [
  ['an Observable', () => new Observable(() => void runs++)],
  [
    'a generator',
    () =>
      (function* () {
        yield runs++;
      })(),
  ],
  [
    'a generator',
    () =>
      (async function* () {
        yield runs++;
      })(),
  ],
  ['an async iterator', () => ({ [Symbol.asyncIterator]: () => ({ next: async () => ({ value: runs++ }) }) })],
  ['a stream', rows],
  ['a stream', () => Readable.toWeb(rows())],
  ['a stream', () => new PassThrough()],
  ['a stream', () => new Writable({ write: (_chunk, _encoding, done) => done() })],
  // The StreamableFile of Nest.
  ['a stream', () => ({ getStream: rows })],
];

const ended = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() }).end();

async function read(): Promise<Readable> {
  const stream = rows().resume();
  await finished(stream);
  return stream;
}

/** Finished work, values that are no work, and properties that may be read without the lock. */
const FINISHED: [string, () => unknown][] = [
  ['nothing', () => undefined],
  ['an array', () => [1]],
  ['a writable stream that has ended, such as the response of Express', ended],
  ['a readable stream that has been read', read],
  ['a response of fetch, whose request has been answered', () => new Response('ok')],
  ['an Observable in an object', () => ({ later: of(1) })],
  [
    'a query that is awaited, and could be iterated instead',
    () => Object.assign(Promise.resolve('rows'), { [Symbol.asyncIterator]: () => {} }),
  ],
];

const CALLS: [string, string, (a: Instance, work: () => unknown) => Promise<unknown>][] = [
  ['using', 'the lock of "stock"', ({ locks }, work) => locks.using('stock', undefined, work)],
  ['tryUsing', 'the lock of "stock"', ({ locks }, work) => locks.tryUsing('stock', work)],
  ['a semaphore', 'the lock of "stock"', ({ locks }, work) => locks.semaphore('stock', { permits: 1 }).using(work)],
  [
    'a leader',
    'the leadership "mailer"',
    async ({ locks }, work) => {
      const leadership = locks.campaign('mailer');
      await leadership.whenElected();
      return leadership.run(work);
    },
  ],
];

beforeEach(() => (runs = 0));

describe.each(CALLS)('the work of %s', (_call, lock, call) => {
  it.each(UNFINISHED)('is refused by name if it returns %s, which would run without the lock', async (kind, make) => {
    const a = new LockWorld().instance('a');
    const results: object[] = [];
    const work = call(a, async () => {
      results.push(make());
      return results[0];
    });
    await expect(work).rejects.toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'work' });
    await expect(work).rejects.toThrow(`The work returned ${kind} under ${lock}`);
    for (const result of results) if (result instanceof Readable) expect(result.destroyed).toBe(true);
    expect(runs).toBe(0);
  });

  it.each(FINISHED)('may return %s', async (_kind, make) => {
    const a = new LockWorld().instance('a');
    await expect(call(a, make)).resolves.not.toThrow();
  });
});

it.each(UNFINISHED)('a job that returns %s has failed', async (kind, make) => {
  const fleet = new Fleet();
  const [anna] = fleet.members('anna');
  const call = anna!.run('09:00', async () => make());
  await fleet.clock.advance(1_000);
  expect(call.error).toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'work' });
  expect((call.error as Error).message).toMatch(`The work returned ${kind} under the job`);
  expect(eventsOf(anna!.instance, 'tickFinished')).toMatchObject([{ outcome: 'error' }]);
  expect(runs).toBe(0);
});

it.each(UNFINISHED)('a callback of a campaign that returns %s has failed', async (kind, make) => {
  const a = new LockWorld().instance('a');
  await a.locks.campaign('mailer', { onElected: make }).whenElected();
  await new Promise((resolve) => setImmediate(resolve));
  expect(eventsOf(a, 'callbackFailed')).toMatchObject([{ error: { code: 'INVALID_LOCK_OPTIONS' } }]);
  expect(String(eventsOf(a, 'callbackFailed')[0]!.error)).toContain(`onElected returned ${kind} under`);
});
