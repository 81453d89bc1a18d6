// Many callers of one process that wait for the same resource. Needs --expose-gc.
import { setTimeout as sleep } from 'node:timers/promises';
import { heapUsed } from '../measure/heap.mjs';

const SETTLE_MS = 1_500;

/** @param {{ waiters: number }} args */
export async function run(world, { waiters }) {
  const client = await world.client();
  for (const resource of ['first', 'second']) await rush(client, resource, waiters);
  await sleep(SETTLE_MS);
  const before = { heap: await heapUsed(), timers: timers(), listeners: listeners() };
  const { order, servedMs, heapWaiting } = await rush(client, 'third', waiters);
  await sleep(SETTLE_MS);
  const heapAfter = await heapUsed();
  let latest = -1;
  let outOfOrder = 0;
  for (const index of order) {
    if (index < latest) outOfOrder++;
    latest = Math.max(latest, index);
  }
  return {
    servedMs,
    outOfOrder,
    heapWaitingBytes: (heapWaiting - before.heap) / waiters,
    heapLeftKb: Math.max(0, heapAfter - before.heap) / 1024,
    timersLeft: Math.max(0, timers() - before.timers),
    listenersLeft: Math.max(0, listeners() - before.listeners),
  };
}

async function rush({ acquire, release }, resource, waiters) {
  const held = await acquire(resource);
  const order = [];
  const all = Array.from({ length: waiters }, async (_, index) => {
    const lease = await acquire(resource);
    order.push(index);
    await release(lease);
  });
  await sleep(200); // all of them wait
  const heapWaiting = await heapUsed();
  const startedAt = performance.now();
  await release(held);
  await Promise.all(all);
  return { order, servedMs: performance.now() - startedAt, heapWaiting };
}

function timers() {
  return process.getActiveResourcesInfo().filter((type) => type === 'Timeout' || type === 'Immediate').length;
}

/** Of the process and of every open socket. */
function listeners() {
  const emitters = [process, ...process._getActiveHandles()].filter(
    (handle) => typeof handle.eventNames === 'function',
  );
  return emitters.reduce(
    (total, emitter) => total + emitter.eventNames().reduce((count, name) => count + emitter.listenerCount(name), 0),
    0,
  );
}
