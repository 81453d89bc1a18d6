import { useRedis } from '../../test/support/redis/redis-server.js';
import { theLeader } from '../demo/scenes/mailer.mjs';
import { waitUntil } from '../demo/wait-until.mjs';
import type { Arrival } from '../src/mails/post-office.js';
import { useFleet } from './use-fleet.js';

const redis = useRedis();
const fleet = useFleet(redis);

// The demo shows that a kill loses no mail: see demo.slow.test.ts.
it('of a leader that stands still are sent by the next one, and the old one finishes no more than the mail it was at', async () => {
  const paused = await waitUntil('one instance leads', () => theLeader(fleet()));
  const other = fleet().other(paused);
  const arrivals = async (): Promise<Arrival[]> => (await other.get('/boxes/mails')).body.arrivals;
  const before = (await arrivals()).length;
  for (let i = 0; i < 20; i++) await other.post('/boxes/mails', { id: `news-${i}`, to: 'alice' });
  await waitUntil('the leader has begun to send', async () => (await arrivals()).length > before);
  paused.pause();
  const ofTheNext = await waitUntil('another one sends', async () =>
    (await arrivals()).find(({ id, instance }) => id.startsWith('news-') && instance !== paused.name),
  );
  paused.resume();
  await waitUntil('the outbox is empty', async () => (await other.get('/boxes/mails')).body.waiting.length === 0);
  // It is a candidate again: so it has read its clock, and would have sent its mails.
  await waitUntil('the paused one waits for its turn', async () =>
    (await other.lock('leader:mailer')).waiters.some(({ instanceId }) => instanceId.startsWith(`${paused.name}:`)),
  );

  const news = (await arrivals()).filter(({ id }) => id.startsWith('news-'));
  const late = news
    .slice(news.findIndex(({ id }) => id === ofTheNext.id))
    .filter(({ token }) => token < ofTheNext.token);
  expect(late.length).toBeLessThanOrEqual(1);
  expect(new Set(news.map(({ id }) => id)).size).toBe(20);
  expect(ofTheNext.token).toBeGreaterThan(news[0]!.token);
});
