// Steps around a fault, so that the parent decides when it happens.
import { setTimeout as sleep } from 'node:timers/promises';

const STEPS = { connect, acquire, call, hold, block, countLost };

/** @param {{ step: keyof typeof STEPS, resource: string, tuning?: object }} args */
export function run(world, { step, ...args }) {
  return STEPS[step](world, args);
}

async function connect(world, { tuning }) {
  await world.client(tuning);
}

async function acquire(world, { resource, tuning }) {
  const client = await world.client(tuning);
  world.kept.set(resource, await client.acquire(resource));
}

/** Begins a call at equal distances. One that has not ended 20 s after the last one began has failed. */
async function call(world, { resource, tuning, everyMs, forMs }) {
  const client = await world.client(tuning);
  const startedAt = performance.now();
  let firstAt = Infinity;
  let succeeded = 0;
  const use = async () => {
    const lease = await client.acquire(resource);
    firstAt = Math.min(firstAt, performance.now());
    await client.release(lease);
    succeeded++;
  };
  const calls = [];
  for (let at = 0; at < forMs; at += everyMs) {
    await sleep(startedAt + at - performance.now());
    calls.push(use().catch(() => undefined));
  }
  await Promise.race([Promise.all(calls), sleep(20_000)]);
  return { failedCalls: calls.length - succeeded, outageS: (firstAt - startedAt) / 1_000 };
}

/** Leases that are renewed at different moments. */
async function hold(world, { resource, tuning, leases, withinMs }) {
  const client = await world.client(tuning);
  const begin = async (index) => {
    await sleep(Math.random() * withinMs);
    return client.acquire(`${resource} ${index}`);
  };
  world.kept.set('leases', await Promise.all(Array.from({ length: leases }, (_, index) => begin(index))));
}

/** Blocks the event loop, without using the processor. */
async function block(_world, { ms }) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** By the clock of the process, and by Redis. */
async function countLost({ kept }) {
  await sleep(1_000);
  const held = await Promise.all(kept.get('leases').map((lease) => lease.isHeld() && lease.verify()));
  return held.filter((isHeld) => !isHeld).length;
}
