import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Bench } from './bench.js';

const LOOK_MS = 15;

/** Reads the queues repeatedly. Failures during a fault of Redis are ignored. */
export async function observe(bench: Bench): Promise<void> {
  const kinds = ['stock', 'prices', 'exports', 'ledger'];
  while (!bench.isOver) {
    const resource = bench.pick(kinds[bench.upTo(kinds.length)]!);
    const from = machineNow();
    const state = await bench.locks.inspect(resource).catch(() => ({ holders: [], waiters: [] }));
    // A slow reply shows that Redis, or the whole machine, stalled.
    if (state.waiters.length > 0 || machineNow() - from > bench.settings.leaseMs / 4) {
      const holders = state.holders.map(({ instanceId, fencingToken: token }) => ({ instanceId, token }));
      const waiters = state.waiters.map(({ instanceId }) => instanceId);
      bench.log.say({ type: 'queue', from, resource, holders, waiters });
    }
    await sleep(LOOK_MS);
  }
}
