import type { Holder } from '../api/holder.js';
import type {
  CallTrace,
  HoldTrace,
  LockTracer,
  RenewalTrace,
  RunTrace,
  TracedEnd,
  TracedGrant,
  TracedLock,
  TracedRun,
} from '../events/lock-tracer.js';

/** Told of what a tracer throws. */
type Failed = (error: unknown) => void;

/** A tracer, or what it has made, with the one that hears of its errors. */
interface Guarded<T> {
  readonly each: T;
  readonly failed: Failed;
}

/** The tracers of one lock service, as one. None of their errors reaches a caller, and no work runs twice. */
export class Tracers {
  #tracers: readonly Guarded<LockTracer>[] = [];
  /** Whether one of them can record. */
  #isOn = false;
  #wantsRenewals = false;

  /** Whether there is none that can record. */
  get isEmpty(): boolean {
    if (this.#tracers.length === 0) return true;
    this.#isOn ||= this.#tracers.some(({ each, failed }) => guard(failed, () => each.isOff?.() !== true));
    return !this.#isOn;
  }

  /** Whether one of them follows renewals. */
  get wantsRenewals(): boolean {
    return this.#wantsRenewals;
  }

  /** @returns a function that removes it. What it follows by then, it follows to the end */
  add(tracer: LockTracer, failed: Failed): () => void {
    const added = { each: tracer, failed };
    this.#set([...this.#tracers, added]);
    return () => this.#set(this.#tracers.filter((other) => other !== added));
  }

  #set(tracers: readonly Guarded<LockTracer>[]): void {
    this.#tracers = tracers;
    this.#isOn = false;
    this.#wantsRenewals = tracers.some(({ each, failed }) => guard(failed, () => each.followsRenewals === true));
  }

  acquire(lock: TracedLock): CallTraces | undefined {
    return some(
      CallTraces,
      made(this.#tracers, (tracer) => tracer.acquire(lock)),
    );
  }

  adopt(lock: TracedLock, traceparent: unknown): CallTraces | undefined {
    return some(
      CallTraces,
      made(this.#tracers, (tracer) => tracer.adopt(lock, traceparent)),
    );
  }

  tick(lock: TracedLock, run: TracedRun): RunTraces | undefined {
    return some(
      RunTraces,
      made(this.#tracers, (tracer) => tracer.tick(lock, run)),
    );
  }
}

/** What the tracers have made of one call. */
export class CallTraces {
  constructor(private readonly calls: readonly Guarded<CallTrace>[]) {}

  get traceparent(): string | undefined {
    for (const { each, failed } of this.calls) {
      const traceparent = guard(failed, () => each.traceparent);
      if (typeof traceparent === 'string') return traceparent;
    }
    return undefined;
  }

  run<T>(ask: () => T): T {
    return runIn(this.calls, ask);
  }

  waits(holders: readonly Holder[], waitedMs: number): void {
    tell(this.calls, (call) => call.waits(holders, waitedMs));
  }

  granted(grant: TracedGrant): HoldTraces | undefined {
    return some(
      HoldTraces,
      made(this.calls, (call) => call.granted(grant)),
    );
  }

  failed(error: unknown, waitedMs: number): void {
    tell(this.calls, (call) => call.failed(error, waitedMs));
  }
}

/** What the tracers have made of one lease. */
export class HoldTraces {
  #hasRun = false;

  constructor(private readonly holds: readonly Guarded<HoldTrace>[]) {}

  /** Whether work has run under it. What comes later has a context of its own. */
  get hasRun(): boolean {
    return this.#hasRun;
  }

  run<T>(work: () => T): T {
    this.#hasRun = true;
    return runIn(this.holds, work);
  }

  renews(by: 'watchdog' | 'extend'): RenewalTraces | undefined {
    return some(
      RenewalTraces,
      made(this.holds, (hold) => hold.renews?.(by)),
    );
  }

  ended(end: TracedEnd): void {
    tell(this.holds, (hold) => hold.ended(end));
  }
}

/** What the tracers have made of one renewal. */
export class RenewalTraces {
  constructor(private readonly renewals: readonly Guarded<RenewalTrace>[]) {}

  run<T>(ask: () => T): T {
    return runIn(this.renewals, ask);
  }

  ended(...end: Parameters<RenewalTrace['ended']>): void {
    tell(this.renewals, (renewal) => renewal.ended(...end));
  }
}

/** What the tracers have made of one run of a job. */
export class RunTraces {
  constructor(private readonly runs: readonly Guarded<RunTrace>[]) {}

  run<T>(work: () => T): T {
    return runIn(this.runs, work);
  }

  held(grant: TracedGrant): HoldTraces | undefined {
    return some(
      HoldTraces,
      made(this.runs, (run) => run.held(grant)),
    );
  }

  ended(error: unknown): void {
    tell(this.runs, (run) => run.ended(error));
  }
}

function some<T, Traces>(
  Class: new (made: readonly Guarded<T>[]) => Traces,
  parts: readonly Guarded<T>[],
): Traces | undefined {
  return parts.length > 0 ? new Class(parts) : undefined;
}

function made<T, Made>(parts: readonly Guarded<T>[], make: (each: T) => Made | undefined): Guarded<Made>[] {
  const all: Guarded<Made>[] = [];
  for (const { each, failed } of parts) {
    const one = guard(failed, () => make(each));
    if (one !== undefined) all.push({ each: one, failed });
  }
  return all;
}

function tell<T>(parts: readonly Guarded<T>[], call: (each: T) => void): void {
  for (const { each, failed } of parts) guard(failed, () => call(each));
}

function guard<T>(failed: Failed, call: () => T): T | undefined {
  try {
    const result = call();
    // TypeScript accepts an async function for most of these.
    if (result instanceof Promise) result.catch(failed);
    return result;
  } catch (error) {
    failed(error);
    return undefined;
  }
}

/** Runs the work in the context of each of them, the first one outermost. It runs once, whatever they do with it. */
function runIn<R>(parts: readonly Guarded<{ run<T>(work: () => T): T }>[], work: () => R): R {
  let result: { readonly value: R } | { readonly error: unknown } | undefined;
  const once = (): void => {
    if (result) return;
    try {
      result = { value: work() };
    } catch (error) {
      result = { error };
    }
  };
  let inAll = once;
  for (const { each, failed } of parts.toReversed()) {
    const inner = inAll;
    inAll = () => guard(failed, () => each.run(inner));
  }
  inAll();
  once();
  // It has run by now.
  const known = result!;
  if ('error' in known) throw known.error;
  return known.value;
}
