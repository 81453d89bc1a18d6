// Instances under one kind of load, for the capacity plan. Many instances share a process.
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrimaryConnection } from '../../../dist/modules/redis/topology/primary-connection.js';
import { PROBE_INBOX } from '../../../dist/modules/redis/script/scripts.js';
import { ClusterConnection } from '../../../dist/modules/redis/topology/cluster-connection.js';
import { register, runOnce } from './cron-ticks.mjs';
import { startInstances } from './instances.mjs';

const CALLS_AT_ONCE = 200;
/** Longer than a run takes: the holder renews nothing meanwhile. */
const HELD_MS = 900_000;
const PATIENT = { attemptTimeoutMs: 15_000 };

const STEPS = { start, openInboxes, own, hold, permits, run: runJobs, measure };

/** @param {{ step: keyof typeof STEPS }} args */
export function run(world, { step, ...args }) {
  return STEPS[step](world, args);
}

/**
 * Starts instances, and counts the scripts that they send, and the places that those keep. Each instance begins at once to
 * wait for this many resources, which no other instance waits for, and becomes a candidate for each of these leaderships: a
 * connection that is silent for 3 s first has smaller buffers.
 */
async function start({ url, kept }, { instances, leaseMs, connection = url, waits = 0, leaderships = 0, prefix }) {
  const sent = {};
  for (const { prototype } of [PrimaryConnection, ClusterConnection]) {
    const { route } = prototype;
    prototype.route = function (call) {
      const { name } = call.script;
      sent[name] = (sent[name] ?? 0) + 1;
      if (name === 'keep') sent.keptPlaces = (sent.keptPlaces ?? 0) + call.keys.length / 2;
      return route.call(this, call);
    };
  }
  const options = { connection, leaseMs, waitMs: 60_000, ...PATIENT };
  const services = await startInstances(instances, options, (service, index) => {
    for (const name of namesOf(`${prefix}-${index}`, waits)) {
      service.acquire(name, { waitMs: Infinity }).catch(() => {});
    }
    for (const name of namesOf('led', leaderships)) service.campaign(name);
  });
  kept.set('capacity', { services, sent });
}

/** The first instance holds these for so long that it never renews them here. */
async function own({ kept }, { resources, prefix }) {
  const [service] = kept.get('capacity').services;
  const options = { leaseMs: HELD_MS, watchdog: false };
  await inParts(namesOf(prefix, resources), (name) => service.acquire(name, options));
}

/** Each instance holds this many locks, and renews them: not all at the same moment. */
async function hold({ kept }, { locks, prefix, withinMs }) {
  const acquire = async (service, name) => {
    await sleep(Math.random() * withinMs);
    return service.acquire(name);
  };
  const { services } = kept.get('capacity');
  await Promise.all(
    services.flatMap((service, index) => namesOf(`${prefix}-${index}`, locks).map((name) => acquire(service, name))),
  );
}

/** Each instance holds this many permits of one semaphore, each with a lease of its own, acquired at some time within that. */
async function permits({ kept }, { permits: count, total, prefix, withinMs }) {
  const acquire = async (semaphore) => {
    await sleep(Math.random() * withinMs);
    return semaphore.acquire();
  };
  const semaphores = kept.get('capacity').services.map((service) => service.semaphore(prefix, { permits: total }));
  await Promise.all(semaphores.flatMap((semaphore) => Array.from({ length: count }, () => acquire(semaphore))));
}

/** The first instance registers these jobs, and claims and runs this many ticks of each. */
async function runJobs({ kept }, { jobs, ticks, prefix }) {
  const [service] = kept.get('capacity').services;
  const names = namesOf(prefix, jobs);
  await register(service, names);
  const first = Math.ceil(Date.now() / 1000) * 1000 + 1000;
  for (let at = first, last; at < first + ticks * 1000; last = at, at += 1000) {
    await sleep(at - Date.now());
    await Promise.all(names.map((name) => runOnce(service, name, { at, before: last })));
  }
}

/**
 * What the instances of this process send in this time.
 *
 * @param {object} args
 * @param {number} [args.jobs] each instance claims a tick of so many every `everyMs`
 * @param {number} [args.pairs] how often each instance acquires a free lock in a second, and releases it
 * @param {number} [args.probes] how often each inbox is probed in a second
 * @returns how often each script was sent
 */
async function measure(
  { kept },
  { forMs, from = 0, jobs = 0, everyMs = Infinity, pairs = 0, probes = 0, prefix = '' },
) {
  const { services, sent } = kept.get('capacity');
  await sleep(Math.max(0, from - Date.now()));
  const before = { ...sent };
  const startedAt = performance.now();
  const stop = { isOver: false };
  const work = [];
  if (jobs > 0) work.push(claimTicks(services, namesOf(prefix, jobs), { forMs, everyMs }));
  if (pairs > 0) work.push(...services.map((service, index) => useLocks(service, `${prefix}-${index}`, pairs, stop)));
  const senders = kept.get('senders') ?? [];
  work.push(...senders.map((sender, index) => probeInbox(sender, `${prefix}-${index}`, probes, sent, stop)));
  await sleep(startedAt + forMs - performance.now());
  stop.isOver = true;
  const counts = Object.fromEntries(Object.entries(sent).map(([name, count]) => [name, count - (before[name] ?? 0)]));
  await Promise.all(work);
  return counts;
}

/** As many ticks as fit: in a time of `n` periods of more than 5 s, `n`. The last one is over before the end. */
async function claimTicks(services, names, { forMs, everyMs }) {
  const first = Math.ceil(Date.now() / 1000) * 1000 + 1000;
  const claims = [];
  for (let at = first, last; at - first < forMs - 5_000; last = at, at += everyMs) {
    await sleep(at - Date.now());
    const due = { at, before: last };
    claims.push(...services.flatMap((service) => names.map((name) => runOnce(service, name, due))));
  }
  await Promise.all(claims);
}

/** Inboxes without instances: those probe less often than once a second, which is too little to measure. */
async function openInboxes({ url, kept }, { inboxes, prefix }) {
  const connect = () => new Redis(url);
  const [senders, listeners] = [0, 1].map(() => Array.from({ length: inboxes }, connect));
  await Promise.all(listeners.map((listener, index) => listener.subscribe(`${prefix}-${index}`)));
  await senders[0].script('LOAD', PROBE_INBOX.lua);
  kept.set('senders', senders);
}

/** Probes the inbox as an instance does, but this often in a second. */
async function probeInbox(sender, inbox, perSecond, sent, stop) {
  await sleep((Math.random() * 1000) / perSecond);
  while (!stop.isOver) {
    const startedAt = performance.now();
    sent.probeInbox = (sent.probeInbox ?? 0) + 1;
    const message = `probe 0123456789012345678901 ${sent.probeInbox}`;
    await sender.evalsha(PROBE_INBOX.sha, 1, `lock:{probe}:health:${inbox}`, inbox, message);
    await sleep(Math.max(0, startedAt + 1000 / perSecond - performance.now()));
  }
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
