import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contestants/index.mjs';
import { quantile } from '../measure/statistics.mjs';

const HAND_OVERS = 40;
/** So many, without a pause, before any that counts: what is measured is not the compiler. */
const WARM_UPS = 300;
const TOOK_TOO_LONG_MS = 5_000;

export const scenario = {
  name: 'handover',
  title: 'From one process to the next',
  how:
    'Two processes hand one resource to each other, 40 times in a round, on an otherwise idle machine: from the call of release in ' +
    'the one to the return of acquire in the other, by the clock both share; 300 more go before, without a pause. Before each ' +
    'hand-over a `PING` is timed from the process that is about to release, and a bare `PUBLISH` from there to the message in ' +
    'the other. The packages that poll do so at their shortest setting (3 ms).',
  metrics: [
    { id: 'p50Us', label: 'p50, µs', digits: 0 },
    { id: 'p99Us', label: 'p99, µs', digits: 0 },
    { id: 'pingP50Us', label: 'PING p50, µs', digits: 0 },
    { id: 'publishP50Us', label: 'PUBLISH to message, p50, µs', digits: 0 },
  ],
  targets: [
    {
      text: 'hand-over p50, of a bare PUBLISH',
      of: (values) => values[OURS]?.p50Us / values[OURS]?.publishP50Us,
      atMost: 1.2,
    },
    {
      text: 'hand-over p50, of the PING p50',
      of: (values) => values[OURS]?.p50Us / values[OURS]?.pingP50Us,
      atMost: 1.5,
    },
  ],
  async run(bench) {
    const everyone = bench.contestants('ours', 'peer');
    for (const one of everyone) {
      await bench.attempt('handover', one, () => handOvers(bench, one, bench.count(WARM_UPS, 5), 0));
    }
    return {
      rounds: await bench.eachRound('handover', everyone, (one) => handOvers(bench, one, bench.count(HAND_OVERS, 5))),
    };
  },
};

/** One round of hand-overs between two processes. */
export async function handOvers(bench, one, count, pauseMs = 10) {
  const args = { resource: bench.resource('handover'), tuning: one.patient };
  let [holder, waiter] = bench.fleets.of(one.name, 2);
  const ask = (worker, step, mark) => worker.ask('step', { ...args, step, mark }, { timeoutMs: TOOK_TOO_LONG_MS });
  await ask(holder, 'acquire');
  for (const worker of [holder, waiter]) await ask(worker, 'subscribe');
  const took = [];
  const pings = [];
  const messages = [];
  for (let index = 0; index < count; index++) {
    const acquired = ask(waiter, 'acquire');
    acquired.catch(() => undefined); // awaited below
    await sleep(pauseMs); // it waits now, and nothing else happens
    pings.push(await ask(holder, 'ping'));
    await sleep(pauseMs);
    const heard = ask(waiter, 'hear', String(index));
    await sleep(pauseMs);
    const [publishedAt, heardAt] = await Promise.all([ask(holder, 'publish', String(index)), heard]);
    messages.push(heardAt - publishedAt);
    if (pauseMs > 0) await sleep(4 + (index % 7)); // not in step with those that poll
    const [releasedAt, acquiredAt] = await Promise.all([ask(holder, 'release'), acquired]);
    took.push(acquiredAt - releasedAt);
    [holder, waiter] = [waiter, holder];
  }
  await ask(holder, 'release');
  return {
    p50Us: quantile(took, 0.5) / 1000,
    p99Us: quantile(took, 0.99) / 1000,
    pingP50Us: quantile(pings, 0.5) / 1000,
    publishP50Us: quantile(messages, 0.5) / 1000,
  };
}
