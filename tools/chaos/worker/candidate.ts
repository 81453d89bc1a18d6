import { setTimeout as sleep } from 'node:timers/promises';
import { LeaseLostError } from 'nestjs-redis-lock';
import type { Bench } from './bench.js';
import { Section } from './section.js';

const NAME = 'worker';
const RESOURCE = `leader:${NAME}`;

/** Campaigns for the leadership, and resigns now and then. */
export async function campaign(bench: Bench): Promise<void> {
  const stand = (): Section => {
    const section = new Section(bench, { resources: [RESOURCE], mode: 'exclusive', queues: true, abortMs: 0 });
    section.invoked();
    return section;
  };
  while (!bench.isOver) {
    let section = stand();
    let isElected = false;
    let leaving: Section | undefined;
    let resigns = false;
    const leadership = bench.locks.campaign(NAME, {
      leaseMs: bench.settings.leaseMs,
      onElected: (term) => {
        isElected = true;
        section.granted(term);
        section.watch(term);
      },
      onDemoted: (reason) => {
        if (reason instanceof LeaseLostError) section.ended();
        else (leaving = section).releasing();
        if (resigns) return;
        // It stands again by itself.
        section = stand();
        isElected = false;
      },
    });
    const until = bench.settings.leaseMs * (1 + bench.upTo(4));
    for (let waited = 0; waited < until && !bench.isOver; waited += 20) await sleep(20);
    resigns = true;
    await leadership.resign();
    leaving?.released();
    if (!isElected) section.withdrawn();
  }
}
