// Instances that wait: for locks that another process holds, or to become leaders. Many instances share a process.
import { setTimeout as sleep } from 'node:timers/promises';
import { PrimaryConnection } from '../../../dist/modules/redis/topology/primary-connection.js';
import { register, runOnce } from './cron-ticks.mjs';
import { startInstances } from './instances.mjs';

const CALLS_AT_ONCE = 200;
/** Longer than a scenario takes: the holder renews nothing meanwhile. */
const HELD_MS = 600_000;
const LEASE_MS = 30_000;

const STEPS = { start, hold, wait, campaign, measure };

/** @param {{ step: keyof typeof STEPS }} args */
export function run(world, { step, ...args }) {
  return STEPS[step](world, args);
}

/** Starts instances, and counts the scripts that they send from now on. */
async function start({ url, kept }, { instances }) {
  const services = await startInstances(instances, { connection: url, leaseMs: LEASE_MS, attemptTimeoutMs: 15_000 });
  const sent = {};
  const { route } = PrimaryConnection.prototype;
  PrimaryConnection.prototype.route = function (call) {
    sent[call.script.name] = (sent[call.script.name] ?? 0) + 1;
    return route.call(this, call);
  };
  kept.set('waits', { services, sent });
}

/** The first instance holds these resources for so long that it never renews them here. */
async function hold({ kept }, { resources, prefix }) {
  const [service] = kept.get('waits').services;
  const options = { leaseMs: HELD_MS, watchdog: false };
  for (let from = 0; from < resources; from += CALLS_AT_ONCE) {
    await Promise.all(namesOf(prefix, from, resources).map((name) => service.acquire(name, options)));
  }
}

/** The first instance begins to wait for each of these resources. */
async function wait({ kept }, { resources, prefix }) {
  const [service] = kept.get('waits').services;
  for (let from = 0; from < resources; from += CALLS_AT_ONCE) {
    for (const name of namesOf(prefix, from, resources)) service.acquire(name, { waitMs: Infinity }).catch(() => {});
    await sleep(20);
  }
}

/** Each instance becomes a candidate for each of these leaderships, and registers its jobs. */
async function campaign({ kept }, { leaderships, jobs, prefix }) {
  const { services } = kept.get('waits');
  for (const service of services) {
    for (const name of namesOf(prefix, 0, leaderships)) service.campaign(name);
    await sleep(5);
  }
  if (jobs > 0) await register(services[0], namesOf('job', 0, jobs));
}

/** What the instances of this process send and use in this time. Each of them claims its jobs every `everyMs`. */
async function measure({ kept }, { forMs, jobs = 0, everyMs = Infinity, from = 0 }) {
  const { services, sent } = kept.get('waits');
  await sleep(Math.max(0, from - Date.now()));
  const before = { ...sent };
  const [startedAt, usedBefore] = [performance.now(), process.cpuUsage()];
  const names = namesOf('job', 0, jobs);
  const claims = [];
  if (jobs > 0) {
    const first = Math.ceil(Date.now() / 1000) * 1000 + 1000;
    for (let at = first, last; at - first < forMs - 5_000; last = at, at += everyMs) {
      await sleep(at - Date.now());
      const due = { at, before: last };
      claims.push(...services.flatMap((service) => names.map((name) => runOnce(service, name, due))));
    }
  }
  await sleep(startedAt + forMs - performance.now());
  await Promise.all(claims);
  const seconds = (performance.now() - startedAt) / 1000;
  const used = process.cpuUsage(usedBefore);
  const counts = Object.fromEntries(
    Object.entries(sent).map(([name, count]) => [name, (count - (before[name] ?? 0)) / seconds]),
  );
  return { counts, cpuPercent: (used.user + used.system) / 10_000 / seconds };
}

function namesOf(kind, from, to) {
  return Array.from(
    { length: Math.max(0, Math.min(CALLS_AT_ONCE, to - from)) },
    (_, index) => `${kind}-${from + index}`,
  );
}
