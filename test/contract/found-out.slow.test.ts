import { describeJobStore, describeLockStore } from './describe-stores.js';
import { isOnEveryServer } from './suite.js';
import { BROKEN_JOBS, BROKEN_LOCKS, memoryWith } from './broken-stores.js';
import { CollectedTests } from './collected-tests.js';

/** Which test finds it first: one that is marked for every server, or else another one. */
const FOUND_BY: Readonly<Record<string, string>> = {
  'grants what another owner holds':
    'a lease > acquire > grants a free resource, refuses it to every other owner, and says how long the lease lasts',
  'does not compare when calls began':
    'the queue > where only the newest call counts > one that began before another one that has joined does not join, and ends none',
  'forgets the order of its queue':
    'a read/write lock > readers directly behind each other are granted together, and the writer behind them is not',
  'makes a lease shorter by a command that comes late': 'a lease > in exclusive mode, only the owner > renews',
  'renews one lease of a turn, and answers for all':
    'a lease > renews many leases of one turn of the event loop, each for itself',
  'mints the same token again':
    'a lease > acquire > mints a larger token for every lease of a resource, on every instance',
  'releases the lock of another owner': 'a read/write lock > a release that is sent again grants nothing twice',
  'lets a reader in beside a writer':
    'a read/write lock > readers directly behind each other are granted together, and the writer behind them is not',
  'grants more permits than there are':
    'a semaphore > grants a permit that is released to the first waiter, and to no other',
  'shows the owner id': 'a lease > inspect > shows holders and waiters, and no secret (exclusive)',
  'tells a waiter nothing of its grant':
    'a read/write lock > readers directly behind each other are granted together, and the writer behind them is not',
  'puts a waiter that has withdrawn back into the queue when its place is kept':
    'kept places > are answered in the order of the question, 64 at once',
  'keeps a place with the stamp of an older question':
    'kept places > are granted for what is left since they were kept, with that stamp, rounded down',
  'tells a watcher that a held resource is free':
    'a watcher > is told once when the last holder has gone, and nothing is left, in exclusive mode',
  'goes on after it was closed': 'a lease > rejects every command after close',
  'leaves records behind':
    'a read/write lock > readers directly behind each other are granted together, and the writer behind them is not',
  'grants a claimed tick to a second claimant':
    'a tick never starts twice: not after it has run, and a late clock gets nothing',
  'starts a tick however late it is':
    'a tick that is a time > is refused if it is too late, though nothing of it is remembered',
  'does not know a pause when a tick is claimed': 'a pause > is obeyed by each claim, with what its caller said',
  'forgets by whom a job was paused': 'a pause > is obeyed by each claim, with what its caller said',
};
/** The same, of what no way to a server can change: no test of these is marked. */
const FOUND_BY_OTHERS: Readonly<Record<string, string>> = {
  'revives a lease that has ended by a renewal':
    'a lease > in exclusive mode, only the owner > was the owner: after the release none of its commands changes anything',
  'forgets a pause that is over with the next one':
    'a pause that ends by itself > is known still when the job is paused again',
};

describe.each([
  ['locks', describeLockStore, BROKEN_LOCKS],
  ['jobs', describeJobStore, BROKEN_JOBS],
] as const)('the contract of a store of %s', (_, describeStore, broken) => {
  it.each(Object.entries(broken))('finds a store that %s', async (what, parts) => {
    const tests = new CollectedTests((runner) => describeStore(runner, memoryWith(parts), { timeoutMs: 1_000 }));
    tests.all.sort((one, other) => Number(isOnEveryServer(other.run)) - Number(isOnEveryServer(one.run)));
    const name = (await tests.firstFailure())?.name;
    const isMarked = tests.all.some((test) => test.name === name && isOnEveryServer(test.run));
    expect([name, isMarked]).toEqual(what in FOUND_BY ? [FOUND_BY[what], true] : [FOUND_BY_OTHERS[what], false]);
  });
});
