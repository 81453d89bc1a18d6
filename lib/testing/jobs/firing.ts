import type { LockEvent } from '../../core/events/events.js';
import { inRootContext } from '../../core/util/async-contexts.js';
import type { JobsUnderTest } from '../../nest/jobs/jobs-under-test.js';
import type { Job } from '../../nest/schedule/run-job.js';

/** What the applications of a fleet did with a tick. */
export interface FiredJob {
  readonly tick: string;
  /** The `instanceId` of the application that ran it; `undefined` if none did. */
  readonly ranOn: string | undefined;
  /** What the method returned. */
  readonly result: unknown;
  /** The other applications that have the job. */
  readonly skipped: readonly {
    readonly instanceId: string;
    /**
     * Why the application did not run the tick: a reason of the event `tickSkipped`, or `'standsBy'`: it waits to run the
     * tick if the one that runs it dies; or `'notReached'`: a decorator above that of the job did not call the method; or
     * `'closed'`: the application closes.
     */
    readonly reason: Extract<LockEvent, { type: 'tickSkipped' }>['reason'] | 'standsBy' | 'notReached' | 'closed';
  }[];
}

/** Why an application did not run a tick. */
export type WhySkipped = FiredJob['skipped'][number]['reason'];

/** What one application did with a tick. */
export type Ending =
  | { readonly ran: true; readonly result: unknown }
  | { readonly ran: true; readonly error: unknown }
  | { readonly ran: false; readonly reason: WhySkipped }
  | { readonly ran: false; readonly error: unknown };

/** Longer than a test lets pass: a year and a day. */
const KEEP_MS = 366 * 24 * 60 * 60 * 1_000;

/** Fires a tick on one application, as its timer does. */
export async function fire({ service }: JobsUnderTest, name: string, job: Job, tick: string): Promise<Ending> {
  let hasBegun = false;
  let reason: WhySkipped | undefined;
  const stop = service.observe((event) => {
    if (event.type === 'tickSkipped' && event.job === name && event.tick === tick) reason = event.reason;
  });
  const begins = (): void => void (hasBegun = true);
  try {
    // Not in the context of the test, which may hold a lock.
    const call = (): ReturnType<Job['run']> =>
      job.run({ kind: 'tick', tick: { tick, keepMs: KEEP_MS, spreadMs: 0 }, begins });
    const { result, isTaken } = await inRootContext(call);
    if (hasBegun) return { ran: true, result };
    return { ran: false, reason: reason ?? (isTaken ? 'closed' : 'notReached') };
  } catch (error) {
    return { ran: hasBegun, error };
  } finally {
    stop();
  }
}
