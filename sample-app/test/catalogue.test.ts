import { rejection } from '../../test/support/expect/eventually.js';
import { useRedis } from '../../test/support/redis/redis-server.js';
import { isHalfDone } from '../demo/scenes/catalogue.mjs';
import { waitUntil } from '../demo/wait-until.mjs';
import type { Price } from '../src/catalogue/catalogue.service.js';
import type { Stamp } from '../src/time-clock/time-clock.js';
import { useFleet } from './use-fleet.js';

const redis = useRedis();
/** One turns the pages slowly, so that it can be killed in between; the other one sees everything at once. */
const fleet = useFleet(redis, [
  { name: 'slow', env: { PAGE_MS: '400', PRINT_MS: '400' } },
  { name: 'fast', env: { PAGE_MS: '1', PRINT_MS: '1' } },
]);
const slow = () => fleet().named('slow')!;
const fast = () => fleet().named('fast')!;
const lock = () => fast().lock('catalogue');

async function edit(cents: number): Promise<void> {
  expect((await fast().post('/catalogue/editions', { cents })).status).toBe(201);
}

async function stamps(): Promise<Stamp[]> {
  return (await fast().get('/time-clock/catalogue')).body;
}

async function slowReaders(): Promise<number> {
  return (await stamps()).filter(({ instance, at }) => instance === 'slow' && at === 'in').length;
}

it('is read on one instance while another one reads it, and edited by none', async () => {
  await edit(100);
  const slowRead = slow().get('/catalogue');
  await waitUntil('the slow one reads', async () => (await slowReaders()) === 1);
  const editing = edit(150);
  const { body } = await slowRead;
  expect(isHalfDone(body)).toBe(false);
  expect(body[0].cents).toBe(100);
  await editing;
  const readers = [slow().get('/catalogue'), slow().get('/catalogue')];
  await waitUntil('the slow one reads again', async () => (await slowReaders()) === 3);
  await fast().get('/catalogue');
  const since = (await stamps()).slice(2);
  // The fast one has come and gone while both of the slow ones were there.
  expect(since.map(({ instance, at }) => `${instance} ${at}`)).toEqual(['slow in', 'slow in', 'fast in', 'fast out']);
  await Promise.all(readers);
});

it('lets readers in beside the editor who only reads the proof any more', async () => {
  const proof = slow().post('/catalogue/editions', { cents: 200 });
  await waitUntil('the editor has become a reader', async () => (await lock()).mode === 'read');
  const read: Price[] = (await fast().get('/catalogue')).body;
  expect((await lock()).holders.map(({ instanceId }) => instanceId)).toEqual([`slow:${slow().pid}`]);
  expect(read.map(({ cents }) => cents)).toEqual([200, 200, 200, 200]);
  expect((await proof).body).toEqual(read);
});

it('is edited after a lease at most when a reader was killed', async () => {
  const killed = slow();
  const before = await slowReaders();
  const unanswered = rejection(killed.get('/catalogue'));
  await waitUntil('the slow one reads', async () => (await slowReaders()) > before);
  await killed.kill();
  await unanswered;
  expect((await lock()).mode).toBe('read');
  await edit(300);
  expect((await fast().get('/catalogue')).body).toMatchObject([{ cents: 300 }, {}, {}, { cents: 300 }]);
  await fleet().replace(killed);
});

it('is never seen half done, also when its editor was killed half way', async () => {
  await edit(400);
  const killed = slow();
  const unanswered = rejection(killed.post('/catalogue/editions', { cents: 500 }));
  await waitUntil('half of the edition is printed', async () =>
    isHalfDone((await fast().get('/catalogue-without-lock')).body),
  );
  await killed.kill();
  await unanswered;
  expect(isHalfDone((await fast().get('/catalogue-without-lock')).body)).toBe(true);
  const { body: pages } = await fast().get('/catalogue');
  expect(isHalfDone(pages)).toBe(false);
  expect(pages[3].cents).toBe(500);
  await fleet().replace(killed);
});

it('has nothing of an editor who stood still for longer than its lease', async () => {
  await edit(600);
  const paused = slow();
  const stale = paused.post('/catalogue/editions', { cents: 700 });
  await waitUntil('half of the edition is printed', async () =>
    isHalfDone((await fast().get('/catalogue-without-lock')).body),
  );
  paused.pause();
  const { body: finished } = await fast().get('/catalogue');
  expect(finished).toMatchObject([{ cents: 700 }, { cents: 700 }, { cents: 700 }, { cents: 700 }]);
  await edit(800);
  paused.resume();
  expect((await stale).status).toBe(503);
  const { body: pages } = await fast().get('/catalogue');
  expect(pages).toMatchObject([{ cents: 800 }, { cents: 800 }, { cents: 800 }, { cents: 800 }]);
});
