import type { TickSchedule } from '../../../lib/features/jobs/core/watched-job.js';

/** A schedule with a tick at every full multiple. */
export function every(ms: number, text = `every ${ms} ms`): TickSchedule {
  const after = (time: number): number => (Math.floor(time / ms) + 1) * ms;
  return {
    text,
    after,
    around: (tick) => ({ before: tick - ms, after: tick + ms }),
    async between(from, until, most) {
      const ticks: number[] = [];
      for (let tick = after(from); tick <= until; tick += ms) ticks.push(tick);
      return { count: ticks.length, ...(ticks.length > 0 && { first: ticks[0]! }), ticks: ticks.slice(-most) };
    },
  };
}
