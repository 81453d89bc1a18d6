import type { LeaseDeps } from '../lease/lease-deps.js';
import type { TickReply } from '../store/job-claims.js';
import { describeTick, type TickAttempt } from './tick-claims.js';

/** Tells the observers why a tick does not run on this instance. */
export function tellOfSkipped(attempt: TickAttempt, reply: TickReply, { observers, clock }: LeaseDeps): void {
  const { options, due } = attempt;
  attempt.published?.is({ outcome: 'skipped', reason: reasonOf(reply) });
  if (!observers.wants('tickSkipped')) return;
  const event = { type: 'tickSkipped', ...describeTick(observers, options) } as const;
  if (reply.status === 'late' || reply.status === 'early') {
    const { status: reason, lateMs } = reply;
    const clockBehindMs = Math.round(lateMs - (clock.wallNow() - due!.at));
    const isClockWrong = Math.abs(clockBehindMs) > due!.earlyMs;
    observers.emit({ ...event, reason, lateMs, ...(isClockWrong && { clockBehindMs }) });
  } else if (reply.status === 'paused') {
    const { by, until } = reply;
    observers.emit({
      ...event,
      reason: 'paused',
      ...(by !== undefined && { by }),
      ...(until !== undefined && { until }),
    });
  } else {
    observers.emit({ ...event, reason: reply.status === 'overlap' ? 'overlap' : 'claimed' });
  }
}

function reasonOf({ status }: TickReply): 'claimed' | 'overlap' | 'paused' | 'late' | 'early' {
  const isNamed = status === 'late' || status === 'early' || status === 'overlap' || status === 'paused';
  return isNamed ? status : 'claimed';
}
