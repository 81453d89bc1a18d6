// Instances that hold, wait, claim and acquire. Many instances share a process: see measure/fleet.mjs.
import { setTimeout as sleep } from 'node:timers/promises';
import { register, runOnce } from './cron-ticks.mjs';
import { startInstances } from './instances.mjs';

const CALLS_AT_ONCE = 200;
/** Longer than a run: the holder renews nothing during it. */
const HELD_MS = 900_000;

const STEPS = { start, own, hold, registerJobs, measure };

/** @param {{ step: keyof typeof STEPS }} args */
export function run(world, { step, ...args }) {
  return STEPS[step](world, args);
}

/**
 * Each instance begins at once to wait for this many resources, which no other instance waits for, and becomes a candidate for each
 * of these leaderships: a connection that is silent for 3 s first has smaller buffers.
 */
async function start({ url, kept }, { instances, leaseMs, waits = 0, leaderships = 0, prefix }) {
  const options = { connection: url, leaseMs, waitMs: 60_000, attemptTimeoutMs: 15_000 };
  const begun = [];
  const begin = (service, index) => {
    begun.push(
      inParts(namesOf(`${prefix}-${index}`, waits), (name) => {
        service.acquire(name, { waitMs: Infinity }).catch(() => {});
      }),
    );
    for (const name of namesOf('led', leaderships)) service.campaign(name);
  };
  kept.set('fleet', await startInstances(instances, options, begin));
  await Promise.all(begun);
}

/** The first instance holds these for long enough that it never renews them here. */
async function own({ kept }, { resources, prefix }) {
  const [service] = kept.get('fleet');
  await inParts(namesOf(prefix, resources), (name) => service.acquire(name, { leaseMs: HELD_MS, watchdog: false }));
}

/** Each instance holds so many locks, and permits of one semaphore, and renews them: not all at the same moment. */
async function hold({ kept }, { locks = 0, permits = 0, total, prefix, withinMs }) {
  const soon = async (acquire) => {
    await sleep(Math.random() * withinMs);
    return acquire();
  };
  await Promise.all(
    kept.get('fleet').flatMap((service, index) => {
      const names = namesOf(`${prefix}-${index}`, locks);
      const semaphore = permits > 0 ? service.semaphore('pool', { permits: total }) : undefined;
      return [
        ...names.map((name) => soon(() => service.acquire(name))),
        ...Array.from({ length: permits }, () => soon(() => semaphore.acquire())),
      ];
    }),
  );
}

async function registerJobs({ kept }, { jobs }) {
  await register(kept.get('fleet')[0], namesOf('job', jobs));
}

/**
 * Runs the load of the instances of this process.
 *
 * @param {object} args
 * @param {number} [args.jobs] the ticks that each instance claims every `everyMs`
 * @param {number} [args.pairs] how often each instance acquires a free lock in a second, and releases it
 * @returns {Promise<number>} the processor time of this process, in milliseconds
 */
async function measure({ kept }, { forMs, from, jobs = 0, everyMs, pairs = 0, prefix }) {
  const services = kept.get('fleet');
  await sleep(from - Date.now());
  const [startedAt, usedBefore] = [performance.now(), process.cpuUsage()];
  const stop = { isOver: false };
  const work = pairs > 0 ? services.map((service, index) => useLocks(service, `${prefix}-${index}`, pairs, stop)) : [];
  if (jobs > 0) work.push(claimTicks(services, namesOf('job', jobs), { forMs, everyMs }));
  await sleep(startedAt + forMs - performance.now());
  stop.isOver = true;
  const { user, system } = process.cpuUsage(usedBefore);
  await Promise.all(work);
  return (user + system) / 1000;
}

/** As many ticks as fit: in a time of `n` periods of more than 5 s, `n`. The last one ends before the time is up. */
async function claimTicks(services, names, { forMs, everyMs }) {
  const first = Math.ceil(Date.now() / 1000) * 1000 + 1000;
  const claims = [];
  for (let at = first, last; at - first < forMs - 5_000; last = at, at += everyMs) {
    await sleep(at - Date.now());
    claims.push(...services.flatMap((service) => names.map((name) => runOnce(service, name, { at, before: last }))));
  }
  await Promise.all(claims);
}

async function useLocks(service, name, perSecond, stop) {
  await sleep((Math.random() * 1000) / perSecond);
  while (!stop.isOver) {
    const startedAt = performance.now();
    const lease = await service.acquire(name);
    await lease.release();
    await sleep(Math.max(0, startedAt + 1000 / perSecond - performance.now()));
  }
}

async function inParts(names, work) {
  for (let from = 0; from < names.length; from += CALLS_AT_ONCE) {
    await Promise.all(names.slice(from, from + CALLS_AT_ONCE).map(work));
  }
}

function namesOf(prefix, count) {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}
