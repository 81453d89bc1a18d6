import { setTimeout as sleep } from 'node:timers/promises';
import { SystemClock } from '../../lib/kernel/util/clock.js';
import { FakeClock } from '../support/world/fake-clock.js';
import { quorumInMemory } from './subjects/quorum-in-memory.js';
import { describeJobStore, describeLockStore } from '../contract/describe-stores.js';
import type { StoreSubject } from '../contract/subject.js';

async function inMemory(): Promise<StoreSubject> {
  const clock = new FakeClock();
  return quorumInMemory(3, clock, (ms) => clock.advance(ms));
}

describe('a quorum of three in-memory stores', () => {
  // On a stopped clock all nodes act alike, as one queue does.
  describeLockStore({ describe, it }, inMemory, { semaphores: false, servers: 3 });
});

describe('the job store of a quorum', () => {
  describeJobStore({ describe, it }, async () => quorumInMemory(3, new SystemClock(), sleep), { records: false });
});
