import type { TickStart } from '../checkers/ticks/ticks.js';

/** A line in the log of one run. Times are milliseconds on a clock that all processes share. */
export type TickLine =
  /** The scheduler of a process fires a tick. `call`: no other call of the process has that number. */
  | (Call & { readonly type: 'fired'; readonly job: string; readonly tick: string })
  /** The job begins. `remainingMs`: what is left of the lease; 0 where it is lost. */
  | (Call & { readonly type: 'start'; readonly rerun: boolean; readonly token: number; readonly remainingMs: number })
  /** The job has ended. `hasFailed`: with an error of its own. */
  | (Call & { readonly type: 'end'; readonly remainingMs: number; readonly hasFailed?: boolean })
  /**
   * The call has ended. `error`: the code of what it was rejected with. `isLate`: the tick was refused as late.
   * `isLost`: the lease was lost by then, after the job had ended.
   */
  | (Call & { readonly type: 'done'; readonly error?: string; readonly isLate?: boolean; readonly isLost?: boolean })
  /** The process is dead, at the latest since then. */
  | { readonly type: 'killed'; readonly on: string; readonly at: number };

interface Call {
  readonly on: string;
  readonly at: number;
  readonly call: number;
}

/** One tick on one process, as far as it got. */
export interface TickCall {
  readonly job: string;
  readonly tick: string;
  readonly on: string;
  readonly firedAt: number;
  start?: Extract<TickLine, { type: 'start' }>;
  end?: Extract<TickLine, { type: 'end' }>;
  done?: Extract<TickLine, { type: 'done' }>;
  /** Its process died before the call ended. */
  killedAt?: number;
}

/** Builds calls from lines. The lines of one process are in order. */
export class TickHistory {
  readonly #calls = new Map<string, Map<number, TickCall>>();

  add(line: TickLine): void {
    const ofProcess = this.#callsOn(line.on);
    if (line.type === 'killed') {
      for (const call of ofProcess.values()) if (!call.done) call.killedAt = line.at;
      return;
    }
    const { type, on, at, call: number } = line;
    const call = ofProcess.get(number);
    if (type === 'fired') {
      if (call) throw new Error(`${on} fired its call ${number} twice`);
      ofProcess.set(number, { job: line.job, tick: line.tick, on, firedAt: at });
      return;
    }
    if (!call) throw new Error(`${on} wrote ${type} of call ${number}, which it never began`);
    if (call[type]) throw new Error(`${on} wrote ${type} of call ${number} twice`);
    Object.assign(call, { [type]: line });
  }

  get calls(): TickCall[] {
    return [...this.#calls.values()].flatMap((ofProcess) => [...ofProcess.values()]);
  }

  #callsOn(on: string): Map<number, TickCall> {
    const calls = this.#calls.get(on) ?? new Map<number, TickCall>();
    this.#calls.set(on, calls);
    return calls;
  }
}

/** The starts among the calls, with what is certain of each. */
export function startsOf(calls: readonly TickCall[], onCrashOf: (job: string) => 'skip' | 'retry'): TickStart[] {
  return calls.flatMap((call) => {
    const { job, tick, on, start } = call;
    if (!start) return [];
    const { rerun, token: fencingToken, at: startedAt } = start;
    const onCrash = onCrashOf(job);
    return [
      { job, tick, on, onCrash, rerun, fencingToken, startedAt, heldUntil: heldUntil(call), isWhole: isWhole(call) },
    ];
  });
}

function heldUntil({ start, end, killedAt = Infinity }: TickCall): number {
  const { at, remainingMs } = start!;
  // A lost lease is never held again: who holds it at the end has held it all the time.
  if (end && end.remainingMs > 0) return end.at;
  return Math.max(at, Math.min(at + remainingMs, end?.at ?? Infinity, killedAt));
}

function isWhole({ end, done }: TickCall): boolean {
  // The end is noted before the lock is released, and tried for a lease: within what was left of it, that has succeeded.
  // A shutdown that does not wait for it ends the lease, and the tries.
  return end !== undefined && done !== undefined && !done.isLost && done.at < end.at + end.remainingMs;
}
