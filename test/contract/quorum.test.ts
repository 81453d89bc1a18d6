import { setTimeout as sleep } from 'node:timers/promises';
import { SystemClock } from '../../lib/core/util/clock.js';
import { FakeClock } from '../support/world/fake-clock.js';
import { describeDeadHolder } from './dead-holder.contract.js';
import { describeDowngrade } from './downgrade.contract.js';
import { describeGrantTerms } from './grant-terms.contract.js';
import { describeGrants } from './grants.contract.js';
import { describeLockStore } from './lock-store.contract.js';
import { describeOperators } from './operators.contract.js';
import { describeQueue } from './queue.contract.js';
import { quorumInMemory } from './quorum-in-memory.js';
import { describeReadWrite } from './read-write.contract.js';
import { describeRotation } from './rotation.contract.js';
import type { Subject } from './subject.js';
import { describeTickLedger } from './tick-ledger.contract.js';
import { describeTransfer } from './transfer.contract.js';
import { describeWriter } from './writer.contract.js';

/** On a clock that stands still all nodes do the same. */
const FEATURES = { semaphores: false, oneQueue: true };

async function inMemory(): Promise<Subject> {
  const clock = new FakeClock();
  return quorumInMemory(3, clock, (ms) => clock.advance(ms));
}

describe('a quorum of three in-memory stores', () => {
  describeLockStore(inMemory);
  describe('the queue', () => describeQueue(inMemory));
  describe('grants', () => describeGrants(inMemory));
  describe('grants', () => describeGrantTerms(inMemory, FEATURES));
  describe('a dead holder', () => describeDeadHolder(inMemory));
  describe('rotate', () => describeRotation(inMemory));
  describe('a read/write lock', () => describeReadWrite(inMemory));
  describe('a writer', () => describeWriter(inMemory));
  describe('downgrade', () => describeDowngrade(inMemory, FEATURES));
  describe('transfer', () => describeTransfer(inMemory, FEATURES));
  describe('an operator', () => describeOperators(inMemory, FEATURES));
});

describe('the tick ledger of a quorum', () => {
  describeTickLedger(async () => quorumInMemory(3, new SystemClock(), sleep));
});
