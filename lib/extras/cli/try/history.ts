/** One call for a lock, from the call to the end of its lease. All times are milliseconds of one clock. */
export interface TriedCall {
  readonly key: string;
  /** Which other leases it allows at the same time: none, leases that share, or as many permits as there are. */
  readonly mode: 'exclusive' | 'shared' | 'semaphore';
  /** For a semaphore: the permits of this call, and the total. */
  readonly permits?: number;
  readonly total?: number;
  readonly askedAt: number;
  /** Set if it was granted. From `at` until `heldUntil`, its caller relied on it. */
  readonly lease?: { readonly at: number; readonly token: number; readonly heldUntil: number };
  /** When the caller knew that it had ended. Not set if it never did: its process died. */
  readonly endedAt?: number;
  /**
   * Without a lease: `refused`, or `unknown` if Redis may have granted it. With one: `released`, `unconfirmed` if Redis
   * did not reply to the release, or `lost`.
   */
  readonly end: 'refused' | 'unknown' | 'released' | 'unconfirmed' | 'lost';
}

/** A call that was granted, and relied on. */
export type ReliedOnCall = TriedCall & Required<Pick<TriedCall, 'lease'>>;

/** A lease that was granted after its deadline was never relied on. */
export function isHeld(call: TriedCall): call is ReliedOnCall {
  return call.lease !== undefined && call.lease.heldUntil > call.lease.at;
}

/** The beginning or the end of one operation. The names are Jepsen's, so that its checkers know them. */
export interface HistoryEvent {
  /** In nanoseconds since the first one. */
  readonly time: number;
  /** A number for one caller at a time, which does one operation at a time. */
  readonly process: number;
  /** How an operation ends: `ok`: it is done; `fail`: it is not; `info`: it may be. */
  readonly type: 'invoke' | 'ok' | 'fail' | 'info';
  readonly f: 'acquire' | 'release';
  readonly key: string;
  readonly value: {
    readonly mode: TriedCall['mode'];
    readonly permits?: number;
    readonly total?: number;
    readonly token?: number;
    readonly lost?: true;
  };
}

/** Returns the history for checkers of other people, one event per line, in the order of time. */
export function toJsonLines(calls: readonly TriedCall[]): string {
  return eventsOf(calls)
    .map((event) => `${JSON.stringify(event)}\n`)
    .join('');
}

function eventsOf(calls: readonly TriedCall[]): HistoryEvent[] {
  const start = calls.reduce((first, { askedAt }) => Math.min(first, askedAt), Infinity);
  const steps = calls.flatMap((call, number) => stepsOf(call, start).map((step) => ({ ...step, number })));
  // Two at the same time may have had either order: the beginnings come first, so that they overlap.
  steps.sort((a, b) => a.time - b.time || Number(b.type === 'invoke') - Number(a.type === 'invoke'));
  const processes = new Map<number, number>();
  const unused: number[] = [];
  let used = 0;
  return steps.map(({ number, time, ...step }) => {
    const process = processes.get(number) ?? unused.pop() ?? used++;
    processes.set(number, process);
    // After `info`, an operation may still be under way, so its process begins no other.
    if (step.type === 'fail' || (step.type === 'ok' && step.f === 'release')) unused.push(process);
    return { time, process, ...step };
  });
}

function stepsOf(call: TriedCall, start: number): Omit<HistoryEvent, 'process'>[] {
  const { key, mode, permits, total, askedAt, endedAt, end } = call;
  const asked = { mode, ...(permits !== undefined && total !== undefined && { permits, total }) };
  let last = -1;
  // The steps of a call come one after another, however coarse its clock is.
  const at = (ms: number): number => (last = Math.max(last + 1, Math.round((ms - start) * 1e6)));
  const invoked = { time: at(askedAt), type: 'invoke', f: 'acquire', key, value: asked } as const;
  if (!isHeld(call)) {
    if (endedAt === undefined) return [invoked];
    return [invoked, { ...invoked, time: at(endedAt), type: end === 'unknown' ? 'info' : 'fail' }];
  }
  const { lease } = call;
  const value = { ...asked, token: lease.token };
  const granted = { ...invoked, time: at(lease.at), type: 'ok', value } as const;
  const left = end === 'lost' ? ({ ...value, lost: true } as const) : value;
  const leaving = { time: at(lease.heldUntil), type: 'invoke', f: 'release', key, value: left } as const;
  // For its caller it has ended, whatever Redis replied.
  return [invoked, granted, leaving, { ...leaving, time: at(endedAt ?? lease.heldUntil), type: 'ok' }];
}
