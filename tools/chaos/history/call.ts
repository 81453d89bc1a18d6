import type { AcquireInvoked, Looked, Lost, Wrote } from './entries.js';

/** Everything that was said of one call to acquire. */
export interface Call {
  readonly invoked: AcquireInvoked;
  /** The call whose lease it re-enters, by its own account. */
  readonly outer?: Call;
  /** The number of recorded ends: must be one. */
  endings: number;
  /** Granted: when it was certainly held, its tokens by resource, and until when it could be trusted without a renewal. */
  granted?: { readonly at: number; readonly tokens: ReadonlyMap<string, number>; readonly until: number };
  /** Ended without a lease. */
  refused?: {
    readonly at: number;
    readonly type: 'fail' | 'unknown';
    readonly code: string | null;
    readonly why?: string | undefined;
    readonly hasCause?: boolean | undefined;
  };
  readonly looks: Looked[];
  readonly writes: Wrote[];
  lost?: Lost;
  downgradedAt?: number;
  /** When it gave some of its permits back, and how many it kept. */
  lowered?: { readonly at: number; readonly left: number };
  /** When its end was called. */
  endCalledAt?: number;
  endedAt?: number;
  /** When release was called; and when it had succeeded. */
  releaseCalledAt?: number;
  releasedAt?: number;
  /** When its process ended, if that was before the call's own end. */
  diedAt?: number;
}

/** A resource that is certainly held: from the grant to whatever ended it first. */
export interface Hold {
  readonly call: Call;
  readonly process: string;
  readonly resource: string;
  readonly token: number;
  readonly shares: 'nothing' | 'read' | 'permits';
  /** The permits that it takes of a semaphore. */
  readonly permits: number;
  readonly from: number;
  readonly to: number;
}

/**
 * The last moment until which the lease certainly was held: its end was called, its loss was seen, or its deadline passed. The
 * deadline is the one that was looked at last: it may have become shorter.
 */
export function heldUntil({ granted, looks, lost, endCalledAt }: Call): number {
  let end = granted!.until;
  for (const { at, held, until } of looks) {
    if (!held) return Math.min(end, at, lost?.at ?? Infinity, endCalledAt ?? Infinity);
    end = Math.max(at, until);
  }
  return Math.min(end, lost?.at ?? Infinity, endCalledAt ?? Infinity);
}

/**
 * Returns true if it shares the lease of another call. If that one was just lost, the call is granted a new lease with
 * another token.
 */
export function reenters({ outer, granted }: Call): boolean {
  if (!outer?.granted || !granted) return outer !== undefined;
  const isSame = [...granted.tokens].every(([resource, token]) => outer.granted!.tokens.get(resource) === token);
  return isSame || heldUntil(outer) > granted.at;
}

/**
 * The holds of a call: none where it was not granted or re-enters another, two where a writer became a reader or some of its permits
 * were given back.
 */
export function holdsOf(call: Call): Hold[] {
  const { invoked, granted, downgradedAt = Infinity, lowered } = call;
  if (!granted || reenters(call)) return [];
  const to = heldUntil(call);
  const { mode } = invoked;
  return invoked.resources.flatMap((resource) => {
    const base = { call, process: invoked.process, resource, token: granted.tokens.get(resource)!, permits: 1 };
    const end = Math.min(to, downgradedAt);
    if (mode === 'semaphore') {
      const all = { ...base, shares: 'permits', permits: invoked.permits ?? 1, from: granted.at, to } as const;
      if (!lowered || lowered.at >= to) return [all];
      return [
        { ...all, to: lowered.at },
        { ...all, permits: lowered.left, from: lowered.at },
      ];
    }
    if (mode === 'read') return [{ ...base, shares: 'read', from: granted.at, to } as const];
    const whole: Hold = { ...base, shares: 'nothing', from: granted.at, to: end };
    return end === to ? [whole] : [whole, { ...base, shares: 'read', from: end, to }];
  });
}
