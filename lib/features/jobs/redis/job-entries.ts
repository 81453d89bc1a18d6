import { type JobState, catchUpTick, type JobPause, type TimedPause } from '../core/job-store.js';
import type { MissedSpan } from '../core/job-claims.js';
import { decodeResource, percentEncoded } from '../../../redis/keys.js';

// How the scripts write what they know of a job; see lua/include/job-runs.lua and job-record.lua.

/** For a field of the history: without spaces, and never empty. */
export function encodeField(text: string | undefined): string {
  if (text === undefined || text === '') return '-';
  if (text === '-') return '%2D';
  return percentEncoded(text, /[%\u0000-\u0020\u007f]/g);
}

function decodeField(field: string | undefined): string | undefined {
  return field === undefined || field === '-' ? undefined : decodeResource(field);
}

const ENTRY = /^(\S+) (\d+) ([-xrmc]+) (\S+)(?: (\d+))?(?: (\d+) (ok|error|lost) (\S+) (\S+) (\S+))?$/;

/** One entry of the history; `undefined` for one that another program has written. */
export function readRun(entry: string): JobState['runs'][number] | undefined {
  const found = ENTRY.exec(entry);
  if (!found) return undefined;
  const flags = found[3]!;
  const tick = flags === 'x' ? isoOf(found[1]!) : (decodeField(found[1]) ?? '');
  if (tick === undefined) return undefined;
  // One by one: a list has a thousand of these, and spreads take far more memory.
  const run: { -readonly [K in keyof JobState['runs'][number]]: JobState['runs'][number][K] } = {
    tick,
    startedAt: Number(found[2]),
    instanceId: found[4]!,
    rerun: flags.includes('r'),
    manual: flags.includes('m'),
    catchUp: flags.includes('c'),
  };
  if (flags === 'x') {
    run.outcome = 'missed';
    return run;
  }
  run.attempt = flags.split('r').length;
  run.fencingToken = Number(found[5]);
  if (found[6] === undefined) return run;
  run.endedAt = Number(found[6]);
  run.outcome = found[7] as 'ok' | 'error' | 'lost';
  const [errorName, errorCode, errorMessage] = [decodeField(found[8]), decodeField(found[9]), decodeField(found[10])];
  if (errorName !== undefined) run.errorName = errorName;
  if (errorCode !== undefined) run.errorCode = errorCode;
  if (errorMessage !== undefined) run.errorMessage = errorMessage;
  return run;
}

/** A missed tick has the time at which it was due in the place of its text. */
function isoOf(due: string): string | undefined {
  const time = new Date(Number(due));
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

/** @param text "count first last until" */
export function readSpan(text: string): MissedSpan {
  const [count, first, last] = text.split(' ').map(Number) as [number, number, number];
  return { count, first, last };
}

/** @param text "count first last until", or '' */
export function readOwed(text: string): JobState['owed'] {
  if (!/^\d+ \d+ \d+ \d+$/.test(text)) return undefined;
  const span = readSpan(text);
  return { ...span, tick: catchUpTick(span.last), until: Number(text.split(' ')[3]) };
}

/** @param text "at until by reason", or '' */
export function readPause(text: string): JobPause | undefined {
  const [, at, until, operator] = /^(\d+) (\d+) (.*)$/s.exec(text) ?? [];
  if (at === undefined) return undefined;
  return { at: Number(at), ...readOperator(operator!), ...(until !== '0' && { until: Number(until) }) };
}

/** "by reason": no script reads it. */
export function writeOperator({ by, reason }: Pick<JobPause, 'by' | 'reason'>): string {
  return `${encodeField(by)} ${encodeField(reason)}`;
}

/** @param text "by reason", or '' */
export function readOperator(text: string): Pick<JobPause, 'by' | 'reason'> {
  const [by, reason] = text.split(' ', 2).map(decodeField);
  return { ...(by && { by }), ...(reason && { reason }) };
}

/** @param text "from until" of each, with a space between them */
export function readTimedPauses(text: string): TimedPause[] {
  return Array.from(text.matchAll(/(\d+) (\d+)/g), ([, from, until]) => ({ from: Number(from), until: Number(until) }));
}
