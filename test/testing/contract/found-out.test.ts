import {
  describeJobStore,
  describeLatchStore,
  describeLockStore,
  describeTickStore,
} from '../../../lib/testing/contract/stores/describe-stores.js';
import { BROKEN_JOBS, BROKEN_LATCHES, BROKEN_LOCKS, BROKEN_TICKS, memoryWith, type Parts } from './broken-stores.js';
import { CollectedTests } from './collected-tests.js';

/** Which test finds it first. */
const FOUND_BY: Readonly<Record<string, string>> = {
  'grants what another owner holds':
    'a lease > acquire > grants a free resource, refuses it to every other owner, and says how long the lease lasts',
  'forgets the order of its queue':
    'a read/write lock > readers directly behind each other are granted together, and the writer behind them is not',
  'revives a lease that has ended by a renewal':
    'a lease > in exclusive mode, only the owner > was the owner: after the release none of its commands changes anything',
  'makes a lease shorter by a command that comes late': 'a lease > in exclusive mode, only the owner > renews',
  'mints the same token again':
    'a lease > acquire > mints a larger token for every lease of a resource, on every instance',
  'releases the lock of another owner':
    'a lease > in exclusive mode, only the owner > releases; the attempt of another owner changes nothing',
  'lets a reader in beside a writer': 'a read/write lock > a resource held in write mode, wanted in read mode',
  'grants more permits than there are':
    'messages about grants > name the token and the time it asked, and last for what is left of the time since, in semaphore mode',
  'shows the owner id': 'a lease > inspect > shows a free resource as free',
  'tells a waiter nothing of its grant':
    'a read/write lock > readers directly behind each other are granted together, and the writer behind them is not',
  'puts a waiter that has withdrawn back into the queue when its place is kept':
    'kept places > are not made: one that was withdrawn, is over, or never was',
  'keeps a place with the stamp of an older question':
    'kept places > are granted for what is left since they were kept, with that stamp, rounded down',
  'tells a watcher that a held resource is free':
    'a watcher > is told once when the last holder has gone, and nothing is left, in exclusive mode',
  'goes on after it was closed': 'a lease > rejects every command after close',
  'holds several resources, and tells of one':
    'several resources at once > grants all that are free, and writes what single commands write, in mode exclusive',
  'takes several resources before those that wait for them':
    'several resources at once > grants none before those that wait for it',
  'leaves records behind':
    'a read/write lock > readers > release their own lease and no other one, however often it is sent',
  'grants a claimed tick to a second claimant':
    'tells the others that the tick is taken, and for how long its lock lasts',
  'starts a tick however late it is':
    'for a tick that is a time > refuses one that is too late, though nothing of it is remembered',
  'does not know a pause when a tick is claimed':
    'the history > leaves nothing with size 0 of a text that is no time: not even a record',
  'forgets by whom a job was paused':
    'the history > leaves nothing with size 0 of a text that is no time: not even a record',
  'forgets a pause that is over with the next one':
    'a pause that ends by itself > is known still when the job is paused again',
  'counts an id twice': 'counts an id once, on every instance',
};

describe.each([
  ['locks', describeLockStore, BROKEN_LOCKS],
  ['ticks', describeTickStore, BROKEN_TICKS],
  ['jobs', describeJobStore, BROKEN_JOBS],
  ['latches', describeLatchStore, BROKEN_LATCHES],
] as const)('the contract of a store of %s', (_, describeStore, broken) => {
  const contractOf = (parts: Parts): CollectedTests =>
    new CollectedTests((runner) => describeStore(runner, memoryWith(parts), { timeoutMs: 1_000 }));

  it('is kept by the memory store', async () => {
    expect(await contractOf({}).firstFailure()).toBeUndefined();
  });

  it.each(Object.entries(broken))('finds a store that %s', async (what, parts) => {
    const failure = await contractOf(parts).firstFailure();
    expect(failure?.name).toBe(FOUND_BY[what]);
  });
});
