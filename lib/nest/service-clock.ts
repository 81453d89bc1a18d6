import { type Clock, SYSTEM_CLOCK } from '../core/util/clock.js';

/** The key of a lock service for its clock. Only one with a clock of its own has it. */
const CLOCK = Symbol.for('nestjs-redis-lock:clock');

export function setClock(service: object, clock: Clock): void {
  Object.defineProperty(service, CLOCK, { value: clock });
}

/** The clock by which a lock service counts, for what is timed around it. */
export function clockOf(service: object): Clock {
  return (service as { [CLOCK]?: Clock })[CLOCK] ?? SYSTEM_CLOCK;
}
