import { GROUP } from '../../../../lib/kernel/api/resource.js';
import { claimsOn } from '../../../support/world/forgetful.js';
import { fitting, HOSTILE_TEXTS, textsIn, unsafeIn } from '../../../support/expect/hostile-texts.js';
import { rejection } from '../../../support/expect/eventually.js';
import { LockWorld } from '../../../support/world/lock-world.js';
import { TracedWorld, useAsyncContexts } from '../../../support/world/traced-world.js';

useAsyncContexts();

it.each(Object.entries(HOSTILE_TEXTS))('spans show nothing of %s as it is', async (_what, text) => {
  const world = new LockWorld();
  const traced = new TracedWorld();
  const { locks, store } = world.instance('a', { telemetry: [traced.telemetry], service: text });
  const neighbour = world.instance('b');
  // As a store of the user's own may call it.
  const acquire = store.acquire.bind(store);
  store.acquire = async (...asked) => {
    const reply = await acquire(...asked);
    if (!('seen' in reply) || !reply.seen) return reply;
    const holders = reply.seen.holders.map((holder) => ({ ...holder, instanceId: text.replaceAll('/', '') }));
    return Object.defineProperty(reply, 'seen', { value: { ...reply.seen, holders } });
  };
  const name = fitting(text, 500);
  const label = { group: fitting(text, 40), site: fitting(text, 20), traceparent: fitting(text, 20) };
  const held = await neighbour.locks.acquire(name, { label });
  const waiting = rejection(locks.acquire(name, { waitMs: 1_000 }));
  await world.clock.advance(1_000);
  await waiting;
  await held.release();
  await locks.using(name, undefined, () => {});
  const fail = () => Promise.reject(new Error(text));
  const run = { tick: fitting(text, 100), overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;
  await rejection(locks.jobs.runs(claimsOn(world.server)).run({ ...run, job: name }, fail));

  const { spans } = traced;
  expect(spans.length).toBeGreaterThanOrEqual(4);
  for (const shown of spans.flatMap((span) => textsIn(span))) expect(unsafeIn(shown)).toBeUndefined();
  const [waited] = spans.filter(({ status }) => status === 'error');
  expect(waited!.attributes['lock.holder.group']).toMatch(GROUP);
});
