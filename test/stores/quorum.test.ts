import { setTimeout as sleep } from 'node:timers/promises';
import { SystemClock } from '../../lib/core/util/clock.js';
import { FakeClock } from '../support/world/fake-clock.js';
import { describeDeadHolder } from './contract/dead-holder.contract.js';
import { describeDowngrade } from './contract/downgrade.contract.js';
import { describeGrants, describeGrantTerms } from './contract/grants.contract.js';
import { describeLockStore } from './contract/lock-store.contract.js';
import { describeOperators } from './contract/operators.contract.js';
import { describeQueue } from './contract/queue.contract.js';
import { quorumInMemory } from './subjects/quorum-in-memory.js';
import { describeReadWrite } from './contract/read-write.contract.js';
import { describeRetention } from './contract/retention.contract.js';
import { describeRotation } from './contract/rotation.contract.js';
import { describeLabels } from './contract/label.contract.js';
import { describeSeenHolders } from './contract/seen-holders.contract.js';
import type { Subject } from './subjects/subject.js';
import { describeTickStore } from './other-ports/tick-store.contract.js';
import { describeTransfer } from './contract/transfer.contract.js';
import { describeWatch } from './other-ports/watch.contract.js';
import { describeWriter } from './contract/writer.contract.js';

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
  describe('what is seen of the holders', () => describeSeenHolders(inMemory, FEATURES));
  describe('the label', () => describeLabels(inMemory, FEATURES));
  describe('a read/write lock', () => describeReadWrite(inMemory));
  describe('a writer', () => describeWriter(inMemory));
  describe('downgrade', () => describeDowngrade(inMemory, FEATURES));
  describe('retain', () => describeRetention(inMemory, FEATURES));
  describe('transfer', () => describeTransfer(inMemory, FEATURES));
  describe('an operator', () => describeOperators(inMemory, FEATURES));
  describe('a watcher', () => describeWatch(inMemory, FEATURES, 3));
});

describe('the tick store of a quorum', () => {
  describeTickStore(async () => quorumInMemory(3, new SystemClock(), sleep));
});
