import { describeValue } from '../api/validation.js';
import { describeStack } from '../util/quoted.js';
import type { LockEventOf, LockEventType } from './events.js';
import type { LockTracer } from './lock-tracer.js';
import type { LockObservers, RegisteredGroup } from './observers.js';

/** Counts of one lock service at this moment. */
export interface LockStats {
  /** Resources that this process holds or waits for. Resources that it only polls are not counted. */
  readonly resources: number;
  /** Leases that this process holds. */
  readonly leases: number;
  /** Releases that are sent again until Redis answers, or until the lock has expired. */
  readonly orphanReleases: number;
  /** Resources that Redis may still grant to a call that has given up. */
  readonly lateGrants: number;
  /** Timers that limit commands and waits. */
  readonly alarms: number;
}

/** The view of one lock service that a {@link LockTelemetry} gets. */
export interface LockTelemetrySource {
  /** The name of the lock service. */
  readonly service: string;
  /**
   * Calls the observer with every event from now on, or only with events of some types. Name the types if you can:
   * events that nothing listens to cost nothing.
   *
   * @returns a function that removes the observer
   */
  observe<T extends LockEventType>(observer: (event: LockEventOf<T>) => void, types?: readonly T[]): () => void;
  /**
   * Calls the listener with each decorated method, job and leadership of the application: at once with the known ones,
   * later with each new one.
   *
   * @returns a function that removes the listener
   */
  onRegistered(listener: (registered: RegisteredGroup) => void): () => void;
  /**
   * Traces each call, lease and job run from now on. The tracer is called in the async context of the caller, so its
   * spans can be the parents of the work. A tracer costs more than an observer.
   *
   * @returns a function that removes the tracer
   */
  trace(tracer: LockTracer): () => void;
  /** Returns the locks that the lock service holds and waits for at this moment. */
  stats(): LockStats;
  /**
   * Calls the listener when a call of this process stops waiting, once for each group that it waited for. The
   * `waitedMs` of these calls add up to the whole wait. Waits are tracked from the first listener on, at a small cost.
   *
   * @returns a function that removes the listener
   */
  onBlocked(listener: (blocked: BlockedTime) => void): () => void;
}

/** The time that a call waited for the calls of one group. */
export interface BlockedTime {
  /** The group of the call that waited. */
  readonly group: string;
  /**
   * The group of the holder that the call waited for: one of up to 200 groups, or `_other`. `_unknown` if the lease of
   * a holder in another process has no label.
   */
  readonly holderGroup: string;
  readonly waitedMs: number;
}

/** Observes lock services, for metrics or traces. Its errors never break a lock: the first one is logged. */
export interface LockTelemetry {
  /**
   * Called once by each lock service that uses it, before the first lock is granted.
   *
   * @returns a function that is called when the lock service has closed
   */
  start(source: LockTelemetrySource): (() => void) | void;
}

interface Traced {
  addTracer(tracer: LockTracer, failed: (error: unknown) => void): () => void;
}

/** Starts and stops the telemetries of one lock service, and keeps their errors from it. */
export class Telemetries {
  readonly #stops: (() => void)[] = [];
  #hasWarned = false;

  constructor(
    private readonly observers: LockObservers,
    private readonly traces: Traced,
    private readonly parts: Pick<LockTelemetrySource, 'stats' | 'onBlocked'>,
    private readonly warn: (line: string) => void,
  ) {}

  start(telemetries: readonly LockTelemetry[]): void {
    const source: LockTelemetrySource = {
      service: this.observers.service,
      observe: (observer, types) => this.observers.add(this.#guarded(observer), types),
      onRegistered: (listener) => this.observers.groups.onRegistered(this.#guarded(listener)),
      trace: (tracer) => this.traces.addTracer(tracer, (error) => this.#failed(error)),
      stats: () => this.parts.stats(),
      onBlocked: (listener) => this.parts.onBlocked(this.#guarded(listener)),
    };
    for (const telemetry of telemetries) {
      this.#guarded(() => {
        const stop = telemetry.start(source);
        if (typeof stop === 'function') this.#stops.push(stop);
        return stop;
      })();
    }
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) this.#guarded(stop)();
  }

  #guarded<A extends readonly unknown[]>(call: (...args: A) => unknown): (...args: A) => void {
    return (...args) => {
      try {
        const result = call(...args);
        if (result instanceof Promise) result.catch((error: unknown) => this.#failed(error));
      } catch (error) {
        this.#failed(error);
      }
    };
  }

  #failed(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.warn(
      `The module option telemetry threw. Locks keep working, but this event was not recorded. This is logged once. ` +
        `See docs/operations/metrics.md. ${describeFailure(error)}`,
    );
  }
}

/** It may be anything, and its message may have the name of a resource. */
function describeFailure(error: unknown): string {
  try {
    return error instanceof Error ? describeStack(error) : describeValue(error);
  } catch {
    return 'It threw a value that cannot be shown.';
  }
}
