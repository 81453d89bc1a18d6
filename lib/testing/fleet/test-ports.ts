import type { JobStore } from '../../core/store/job-store.js';
import type { LatchStore } from '../../core/store/latch-store.js';
import type { TickStore } from '../../core/store/tick-store.js';
import type { CommandPath } from './commands.js';
import { throughPath, type Told } from './forwarded.js';

const OF_TICKS: Told<TickStore, keyof TickStore> = {
  claim: ({ resource }, { owner }) => ({ resource, owner: owner.id }),
  finish: ({ resource }, owner) => ({ resource, owner: owner.id }),
  giveBack: ({ resource }, owner) => ({ resource, owner: owner.id }),
};

const ofJob = (resource: string) => ({ verb: 'job', resource }) as const;

const OF_JOBS: Told<JobStore, Exclude<keyof JobStore, 'refusal'>> = {
  // It releases the lock of the job.
  end: ({ owner }) => ({ verb: 'release', resource: owner.resource, owner: owner.id }),
  noteMissed: ({ resource }) => ofJob(resource),
  look: (resources) => ofJob(resources.join()),
  pause: ofJob,
  resume: ofJob,
  register: (jobs) => ofJob(jobs.map(({ resource }) => resource).join()),
  list: () => ofJob(''),
};

const ofLatch = ({ name }: { readonly name: string }) => ({ verb: 'latch', resource: name }) as const;

const OF_LATCHES: Told<LatchStore, 'countDown' | 'wait' | 'read'> = {
  countDown: ofLatch,
  wait: ofLatch,
  read: ofLatch,
};

/** The tick store of one instance of a fleet. */
export function testTicks(inner: TickStore, path: CommandPath): TickStore {
  return throughPath(inner, OF_TICKS, path);
}

/** What is remembered of jobs, for one instance of a fleet. */
export function testJobs(inner: JobStore, path: CommandPath): JobStore {
  return throughPath(inner, OF_JOBS, path);
}

/** The latches of one instance of a fleet. */
export function testLatches(inner: LatchStore, path: CommandPath): LatchStore {
  return {
    ...throughPath(inner, OF_LATCHES, path),
    trouble: (name) => path.trouble() ?? inner.trouble(name),
    listen(listener) {
      path.onReconnected(() => listener.reconnected());
      inner.listen({
        opened: (name, count) => path.deliver(name, () => listener.opened(name, count)),
        reconnected: () => listener.reconnected(),
      });
    },
  };
}
