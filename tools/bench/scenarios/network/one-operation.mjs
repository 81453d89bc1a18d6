// Measures one operation behind a network: how long it takes, and how many round trips that is by cause and effect.
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a process is given to stand in the queue. */
const QUEUED_MS = 5_000;

/**
 * @param {import('../../network/network.mjs').Network} network
 * @param {((args: object) => Promise<any>)[]} ask the processes `first` and `second` of the network for a step of
 *   tasks/operation.mjs
 * @returns {Promise<{ tookNs: number, trips: number }>}
 */
export async function measureOperation(network, [first, second], { name, isOfTwo }, resource) {
  const args = { operation: name, resource };
  await first({ ...args, step: 'prepare' });
  const waited = isOfTwo ? await inQueue(network, () => second({ ...args, step: 'wait' })) : undefined;
  network.begin();
  const ran = first({ ...args, step: 'run' });
  const [{ startedAt }, { endedAt }] = await Promise.all([ran, waited?.answer ?? ran]);
  const trips = network.tripsOf(isOfTwo ? 'second' : 'first');
  await (isOfTwo ? second : first)({ ...args, step: 'end' });
  return { tookNs: endedAt - startedAt, trips };
}

/** Begins to wait in the other process, and comes back when Redis has answered that one. */
async function inQueue(network, wait) {
  network.begin();
  const answer = wait();
  answer.catch(() => undefined); // awaited by the caller
  for (let leftMs = QUEUED_MS; network.tripsOf('second') < 1 && leftMs > 0; leftMs--) await sleep(1);
  if (network.tripsOf('second') < 1) throw new Error('The other process has not asked for it');
  return { answer };
}
