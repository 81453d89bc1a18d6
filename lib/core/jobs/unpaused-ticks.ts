import type { JobState, MissedNote } from '../store/job-store.js';
import type { TickSchedule } from './tick-schedule.js';

/** Counts the ticks after a time and not after another, without those that were due during a pause. */
export async function countUnpaused(
  schedule: TickSchedule,
  state: JobState,
  after: number,
  until: number,
): Promise<MissedNote['earlier']> {
  let count = 0;
  let first: number | undefined;
  let last: number | undefined;
  for (const span of spansBetween(pausesOf(state), after, until)) {
    const found = await schedule.between(...span, 1);
    count += found.count;
    first ??= found.first;
    last = found.ticks.at(-1) ?? last;
  }
  return first === undefined || last === undefined ? undefined : { count, first, last };
}

type Span = readonly [from: number, until: number];

/** When the job was paused, with both ends. */
function pausesOf({ pause, timedPauses = [] }: JobState): Span[] {
  const pauses = timedPauses.map(({ from, until }): Span => [from, until]);
  if (pause) pauses.push([pause.at, pause.until ?? Infinity]);
  return pauses.sort(([one], [other]) => one - other);
}

/** What the pauses leave of the time after a moment and not after another. */
function spansBetween(pauses: readonly Span[], after: number, until: number): Span[] {
  const spans: Span[] = [];
  for (const [from, end] of pauses) {
    const before = Math.min(from - 1, until);
    if (before > after) spans.push([after, before]);
    after = Math.max(after, end);
  }
  if (until > after) spans.push([after, until]);
  return spans;
}
