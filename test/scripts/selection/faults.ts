/** Where each fault that users and attackers have seen is looked for since: the file of the test, and words of it. */
export const FAULTS: readonly (readonly [fault: string, file: string, words: string])[] = [
  [
    'a connection whose handshake was refused works in database 0',
    'test/redis/faults/refused-handshakes.test.ts',
    'writes nothing elsewhere',
  ],
  [
    'a client of ioredis is ready before SELECT was answered',
    'test/stacks/ioredis/old-versions.slow.test.ts',
    'a connection on which SELECT was refused is none',
  ],
  [
    'an instance is out for good, once a handshake was refused',
    'test/redis/faults/refused-handshakes.test.ts',
    'it has its locks again',
  ],
  [
    'durability does not survive a fail-over behind one address',
    'test/redis/topologies/durability.test.ts',
    'where the old primary lives behind the same address',
  ],
  ['a refused SUBSCRIBE is never tried again', 'test/redis/inbox-subscription.test.ts', 'is asked for every 10 s'],
  ['a job gets another date while it runs, and never does', 'test/nest/jobs/rescheduled-jobs.test.ts', 'another date'],
  ['of two objects with one job, one never runs', 'test/nest/schedule/job-identity.test.ts', 'one job of two objects'],
  ['a mixin has another name in each process', 'test/nest/schedule/job-identity.test.ts', 'of a mixin needs a name'],
  [
    'the process ends when a job on a date fires',
    'test/nest/schedule/job-dates.test.ts',
    'runs where the date passes while the application starts',
  ],
  ['a generator runs after its lock', 'test/nest/decorators/distributed-lock.test.ts', 'refuses the generator'],
  [
    'two decorators on one method take ticks of each other',
    'test/nest/schedule/job-decorators.test.ts',
    'they would take each others ticks',
  ],
  [
    'an interval that is made shorter is silent',
    'lib/testing/contract/others/ticks.ts',
    'remembers a tick no longer than the instance that asks would',
  ],
  [
    'a graceful close loses work that a crash would not lose',
    'test/core/lease/shutdown-inside-work.test.ts',
    'is granted, one after another, and the shutdown waits for the work',
  ],
  [
    'a connection in the shape of another library leads to localhost',
    'test/nest/module/connection-shapes.test.ts',
    'would lead to localhost in silence',
  ],
  [
    'a URL where a host belongs shows its password',
    'test/nest/module/connection-shapes.test.ts',
    'without showing its password',
  ],
  [
    'an end that moves nearer is told to one waiter, which leaves',
    'test/core/places/nearer-ends.test.ts',
    'tells the next one',
  ],
  [
    'waits look one by one where lengths of leases differ',
    'test/core/places/many-places.slow.test.ts',
    'cost at most twice the commands',
  ],
  [
    'the lease of the first of several resources runs while the others are waited for',
    'test/core/lease/composite.test.ts',
    'counted from the last grant',
  ],
  [
    'an overriding job that calls super gets nothing',
    'test/nest/schedule/job-decorators.test.ts',
    'calls super runs the base method in its own run',
  ],
  [
    'one wrong job stops the catch-ups of all',
    'test/redis/jobs/one-wrong-job.test.ts',
    'is told by its name, and the others are looked at',
  ],
  [
    'a retry around a handler is aborted after a time-out',
    'test/nest/handlers/lock-handler-timeouts.test.ts',
    'begins anew acquires the lock anew',
  ],
  [
    'an outage is silent on an instance that holds nothing',
    'test/nest/log/outage-log.test.ts',
    'on an instance that holds nothing',
  ],
  [
    'health says up while the application closes',
    'test/nest/lifecycle/shutdown-hooks.test.ts',
    'from its own onModuleDestroy on',
  ],
  ['an error of a timer has no frame of the application', 'test/core/lease/using.test.ts', 'at (async )?Shop'],
  ['forceRelease leaves no line', 'test/core/operators.test.ts', 'says so where it was called'],
  ['a wrong cron text ends the boot without a name', 'test/nest/schedule/job-dates.test.ts', 'too few fields'],
  ['_other has two meanings', 'test/core/explain/explainer.test.ts', "not.toContain('_other')"],
  [
    'explain says that nothing is wrong of a dead holder',
    'test/core/explain/explainer.test.ts',
    'says when it shows that a holder %s has died since',
  ],
];
