import type { LockObservers } from '../events/observers.js';
import type { PlaceInLine } from '../api/lock-options.js';
import type { Alarm, Alarms } from '../util/alarms.js';
import { type AsyncContext, currentContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import { NEWS_MS, type PendingCall } from './pending-call.js';
import type { ReportedWait } from './why-waiting.js';

/** Most waits are shorter, and nobody could read a report about them. */
const FIRST_MS = 50;

/** The local queue of a resource. */
interface ReportedLine extends ReportedWait {
  readonly calls: readonly PendingCall[];
  readonly placeOfFirst: number | undefined;
  readonly isUndecided: boolean;
}

interface LastReport {
  /** The context of the caller. */
  readonly context: AsyncContext;
  readonly text: string;
  /** The time at which the next report is due, if the place has changed. */
  readonly dueAt: number;
}

/**
 * Reports places to the calls of a local queue that have `onWait`. It sends no command, because earlier replies of
 * Redis have the places.
 */
export class PlaceReports implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  #reports = new Map<PendingCall, LastReport>();

  constructor(
    private readonly line: ReportedLine,
    private readonly deps: { readonly clock: Clock; readonly alarms: Alarms; readonly observers: LockObservers },
  ) {}

  /** `true` if a call with `onWait` may wait. */
  get isNeeded(): boolean {
    return this.#reports.size > 0;
  }

  /** Call this in the async context of the caller. */
  add(call: PendingCall): void {
    const dueAt = call.startedAt + FIRST_MS;
    this.#reports.set(call, { context: currentContext(), text: '', dueAt });
    if (this.heapIndex === -1 || dueAt < this.dueAt) this.deps.alarms.set(this, dueAt);
  }

  stop(): void {
    this.#reports.clear();
    this.deps.alarms.cancel(this);
  }

  ring(): void {
    this.report(this.deps.clock.now());
  }

  /** Reports what has changed, to each call at most once a second. */
  report(now: number): void {
    const { line, deps } = this;
    const { calls, placeOfFirst = 1 } = line;
    const before = this.#reports;
    this.#reports = new Map();
    const due: (() => void)[] = [];
    let nextAt = Infinity;
    for (const [index, call] of calls.entries()) {
      const last = before.get(call);
      if (last === undefined) continue;
      const isDue = now >= last.dueAt && !line.isUndecided;
      const place = isDue ? this.#placeAt(index + placeOfFirst - 1, now) : undefined;
      const text = place && `${place.ahead} ${place.holder?.fencingToken}`;
      const isNew = place !== undefined && text !== last.text;
      const report = isNew ? { ...last, text: text!, dueAt: now + NEWS_MS } : last;
      if (isNew) due.push(() => this.#tell(call, last.context, place));
      this.#reports.set(call, report);
      // A change without a reply of Redis, such as a call that leaves, is found within a second.
      nextAt = Math.min(nextAt, report.dueAt > now ? report.dueAt : now + NEWS_MS);
    }
    deps.alarms.set(this, nextAt);
    // Last, because a callback may end calls.
    for (const tell of due) tell();
  }

  #placeAt(ahead: number, now: number): PlaceInLine {
    return { ahead, holder: this.line.holders(now).holders[0] };
  }

  #tell(call: PendingCall, context: AsyncContext, place: PlaceInLine): void {
    const failed = (error: unknown): void => this.#failed(call, error);
    try {
      const result: unknown = context.runInAsyncScope(call.options.onWait!, undefined, place);
      // TypeScript accepts an async function here.
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  #failed({ options }: PendingCall, error: unknown): void {
    const { observers } = this.deps;
    const { service, resource, group } = observers.describeCall(this.line.resource, options);
    observers.emit({ type: 'callbackFailed', service, group, resource, callback: 'onWait', error });
  }
}
