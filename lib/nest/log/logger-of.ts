import { Logger } from '@nestjs/common';
import { DEFAULT_NAME } from '../tokens.js';
import { quoteResource } from '../../core/api/errors.js';
import type { LockEventOf } from '../../core/events/events.js';
import { countWas } from '../../core/util/plurals.js';

/** The logger of a lock service: `RedisLock`, or `RedisLock:billing` for one with a name. */
export function loggerOf(name: string): Logger {
  return new Logger(name === DEFAULT_NAME ? 'RedisLock' : `RedisLock:${name}`);
}

/** Names the section of the page on the log that has more. */
export function see(section: string): string {
  return `See docs/operations/logs.md#${section}.`;
}

/** A line names so many times. Of more ticks, it names the first and the last. */
const MOST_NAMED = 5;

/** Says which ticks of a job were missed, and what follows. */
export function describeMissed({ job, count, first, last, ticks, catchUp }: LockEventOf<'tickMissed'>): string {
  const times = count > MOST_NAMED ? nameTimes([first, last], ' to ') : nameTimes(ticks, ', ');
  const isOne = count === 1;
  const notRun = isOne ? 'It is not made up for.' : 'They are not made up for.';
  const next = catchUp ? `One run for ${isOne ? 'it' : 'all of them'} follows.` : notRun;
  return (
    `${countWas(count, 'tick')} missed of job ${quoteResource(job)}: ${times} UTC. ` +
    `No instance claimed ${isOne ? 'it' : 'them'}. ${next}`
  );
}

/** Names times in UTC. The day stands before the first time of a day. */
function nameTimes(times: readonly number[], between: string): string {
  let day = '';
  const named = times.map((time) => {
    const [date = '', clock = ''] = new Date(time).toISOString().split('T');
    const short = clock.replace(/(:00)?\.000Z$/, '').replace(/Z$/, '');
    const isSameDay = date === day;
    day = date;
    return isSameDay ? short : `${date} ${short}`;
  });
  return named.join(between);
}
