// Instances of a fleet with cron jobs, many of them in one process: each has connections and a claim of its own.
import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { jobRecordsOf } from '../../../dist/modules/nest/schedule/run-job.js';
import { redisCpuMs } from '../measure/redis-cpu.mjs';
import { register, runOnce, tickAfter } from './cron-ticks.mjs';
import { startInstances } from './instances.mjs';

const LISTS = 20;

/** Many instances share a process, which is busy for longer than one of them would be. */
const PATIENT = { attemptTimeoutMs: 15_000, waitMs: 60_000 };

const STEPS = { start, tick, list, cpu };

/** @param {{ step: keyof typeof STEPS }} args */
export function run(world, { step, ...args }) {
  return STEPS[step](world, args);
}

/** Starts instances, and registers their jobs. */
async function start({ url, kept }, { instances, jobs }) {
  const told = { claims: 0, runs: 0 };
  const observer = ({ type }) => {
    if (type === 'tickStarted') told.runs++;
    if (type === 'tickStarted' || type === 'tickSkipped') told.claims++;
  };
  const services = await startInstances(instances, { connection: url, ...PATIENT, observers: [observer] });
  const names = namesOf('job', jobs);
  await register(services[0], names);
  kept.set('fleet', { services, names, told });
}

/**
 * Every instance claims a tick of each job when it is due.
 *
 * @param {{ at: number, before?: number }} args the tick, and the one before it: those in between were not due
 * @returns how many claims were answered, and how many of them granted
 */
async function tick({ kept }, { at, before }) {
  const { services, names, told } = kept.get('fleet');
  const [claimsBefore, runsBefore] = [told.claims, told.runs];
  await sleep(at - Date.now());
  const startedAt = performance.now();
  await Promise.all(services.flatMap((service) => names.map((name) => runOnce(service, name, { at, before }))));
  const answeredMs = performance.now() - startedAt;
  return { claims: told.claims - claimsBefore, runs: told.runs - runsBefore, answeredMs };
}

/** Registers so many jobs, each with a run, and lists them. */
async function list({ url, kept }, { jobs }) {
  const [service] = kept.get('fleet').services;
  const names = namesOf('listed', jobs);
  await register(service, names);
  // What is due before they are registered is accounted.
  const at = tickAfter(Date.now());
  await Promise.all(names.map((name) => runOnce(service, name, { at })));
  const records = jobRecordsOf(service);
  const listMs = [];
  let known = (await records.list(new Set())).length;
  const before = await cpu({ url });
  const ownBefore = process.cpuUsage();
  for (let index = 0; index < LISTS; index++) {
    const startedAt = performance.now();
    known = Math.min(known, (await records.list(new Set())).filter(({ lastRun }) => lastRun).length);
    listMs.push(performance.now() - startedAt);
  }
  const own = process.cpuUsage(ownBefore);
  const listOwnCpuMs = (own.user + own.system) / 1000 / LISTS;
  const listCpuMs = ((await cpu({ url })).usedMs - before.usedMs) / LISTS;
  return { listMs: listMs.sort((a, b) => a - b)[LISTS / 2], listCpuMs, listOwnCpuMs, known };
}

/** What Redis has done since it was started: its processor time, and the scripts that it was sent. */
async function cpu({ url }) {
  const redis = new Redis(url);
  const usedMs = await redisCpuMs(redis);
  const scripts = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
  redis.disconnect();
  return { usedMs, scripts };
}

function namesOf(kind, count) {
  return Array.from({ length: count }, (_, index) => `${kind}-${index}`);
}
