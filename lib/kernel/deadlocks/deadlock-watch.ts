import type { Alarm, Alarms } from '../util/alarms.js';
import type { Clock } from '../util/clock.js';
import { byResource, findCycle, findCycles, type NestedWait, deadlockedCalls } from './cycles.js';
import type { DeadlockedCall } from '../api/busy-errors.js';

/** Ask all instances this long before a wait ends: a roll call takes up to 300 ms, and Redis may be slow. */
const ASK_BEFORE_MS = 1_000;
/** The pauses between two roll calls of this process: they grow while none finds a deadlock. */
const PAUSE_MS = { first: 1_000, longest: 60_000 };

export interface NestedWaits {
  readonly waits: readonly (NestedWait & { readonly waitedMs: number })[];
  /** On the monotonic clock. */
  readonly readAt: number;
  /** The maximum age of an answer when it was read. */
  readonly withinMs: number;
}

export interface WatchedCall {
  readonly startedAt: number;
  readonly giveUpAt: number;
  deadlock?: readonly DeadlockedCall[];
  nestedWait(): NestedWait;
}

/**
 * Detects calls of several processes that wait for each other. Shortly before a call that holds locks times out, it
 * asks all instances for their waits. It never delays the end of the wait: an answer that comes too late is not used.
 */
export class DeadlockWatch {
  #nextAt = -Infinity;
  #pauseMs = PAUSE_MS.first;
  #latest: { readonly at: number; readonly answers: Promise<NestedWaits | undefined> } | undefined;

  /** @param ask all instances, if they can be asked */
  constructor(
    private readonly deps: { readonly clock: Clock; readonly alarms: Alarms },
    private readonly ask: () => Promise<NestedWaits> | undefined,
  ) {}

  watch(call: WatchedCall): DeadlockAlarm {
    return new DeadlockAlarm(call, this.deps.alarms, () => this.#search(call));
  }

  async cycleOn(resource: string): Promise<readonly DeadlockedCall[] | undefined> {
    const answers = await this.ask();
    if (answers === undefined) return undefined;
    const waits = certainWaits(answers);
    for (const wait of waits.get(resource) ?? []) {
      const cycle = findCycle(wait, (wanted) => waits.get(wanted) ?? []);
      if (cycle.length > 0) return deadlockedCalls(cycle);
    }
    return undefined;
  }

  async #search(call: WatchedCall): Promise<void> {
    // The event loop was blocked: the call gives up now.
    if (this.deps.clock.now() >= call.giveUpAt) return;
    const answers = await this.#answers();
    const cycle = answers && cycleAmong(answers, call);
    if (cycle === undefined) return;
    call.deadlock = cycle;
    this.#nextAt = -Infinity;
    this.#pauseMs = PAUSE_MS.first;
  }

  /** Shared by all calls of a second. */
  #answers(): Promise<NestedWaits | undefined> | undefined {
    const now = this.deps.clock.now();
    if (this.#latest !== undefined && now < this.#latest.at + PAUSE_MS.first) return this.#latest.answers;
    if (now < this.#nextAt) return undefined;
    this.#nextAt = now + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MS.longest);
    // If they cannot be asked, the wait ends without a diagnosis.
    const answers = this.ask()?.catch(() => undefined);
    this.#latest = answers && { at: now, answers };
    return answers;
  }
}

export class DeadlockAlarm implements Alarm {
  dueAt = 0;
  heapIndex = -1;

  constructor(
    { startedAt, giveUpAt }: WatchedCall,
    private readonly alarms: Alarms,
    private readonly search: () => Promise<void>,
  ) {
    // A short wait asks halfway.
    alarms.set(this, Math.max(giveUpAt - ASK_BEFORE_MS, (startedAt + giveUpAt) / 2));
  }

  ring(): void {
    void this.search();
  }

  cancel(): void {
    this.alarms.cancel(this);
  }
}

export function cycleAmong(
  answers: NestedWaits,
  call: Pick<WatchedCall, 'startedAt' | 'nestedWait'>,
): readonly DeadlockedCall[] | undefined {
  if (call.startedAt > answers.readAt - answers.withinMs) return undefined;
  const waits = certainWaits(answers);
  const cycle = findCycle(call.nestedWait(), (resource) => waits.get(resource) ?? []);
  return cycle.length === 0 ? undefined : deadlockedCalls(cycle);
}

/** All cycles that calls wait in, by the answers of all instances: each once. */
export function cyclesAmong(answers: NestedWaits): readonly (readonly DeadlockedCall[])[] {
  return findCycles(certainWaits(answers)).map((cycle) => deadlockedCalls(cycle));
}

/**
 * Returns the waits that count, by resource. The answers were given at different moments, so only waits that had begun
 * before the first of them count: at that moment, all calls of a cycle waited for each other.
 */
function certainWaits({ waits, withinMs }: NestedWaits): ReadonlyMap<string, readonly NestedWait[]> {
  return byResource(waits.filter(({ waitedMs, holds }) => waitedMs >= withinMs && holds.length > 0));
}
