// What an instance does when a cron job is due, as tasks/operation.mjs takes it.
import { register, runOnce, tickAfter } from '../cron-ticks.mjs';

async function registered({ locks, hasJobRecords }, kept) {
  kept.tick = { at: tickAfter(Date.now()) };
  if (hasJobRecords) await register(locks, [kept.resource], kept.tick.at);
}

/** Until the work begins. `kept.ran`: until the end of the run is confirmed. */
function untilWork({ locks }, kept) {
  return new Promise((resolve, reject) => {
    kept.ran = runOnce(locks, kept.resource, kept.tick, resolve);
    kept.ran.then(() => reject(new Error('The tick was not granted')), reject);
  });
}

export const ofAJob = {
  'a tick of a cron job: claim': {
    prepare: registered,
    run: untilWork,
    end: (client, { ran }) => ran,
  },
  'a tick: claim, run and its end': {
    prepare: registered,
    run: ({ locks }, { resource, tick }) => runOnce(locks, resource, tick),
  },
  'a tick that another instance has': {
    async prepare(client, kept) {
      await registered(client, kept);
      await runOnce(client.locks, kept.resource, kept.tick);
    },
    run: ({ locks }, { resource, tick }) => runOnce(locks, resource, tick),
  },
};
