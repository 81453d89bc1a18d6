import type { MissedSpan, ScheduleOfOther } from '../core/job-claims.js';
import { chunks } from '../../../kernel/util/objects.js';
import { decodeField, encodeField } from '../../../redis/keys.js';
import { type JobState, catchUpTick, type JobPause, readHistory, type TimedPause } from '../core/job-state.js';

// How the scripts write what they know of a job; see lua/include/job-runs.lua and job-record.lua.

/** So many texts the reply has for each job; see lua/look-jobs.lua. */
const TEXTS_PER_JOB = 4;

const ENTRY = /^(\S+) (\d+) ([-xrmc]+) (\S+)(?: (\d+))?(?: (\d+) (ok|error|lost) (\S+) (\S+) (\S+))?$/;

/** One entry of the history; `undefined` for one that another program has written. */
function readRun(entry: string): JobState['runs'][number] | undefined {
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
function readTimedPauses(text: string): TimedPause[] {
  return Array.from(text.matchAll(/(\d+) (\d+)/g), ([, from, until]) => ({ from: Number(from), until: Number(until) }));
}

/** Reads the reply about jobs. @param limit so many runs of each at most */
export function readStates(resources: readonly string[], reply: unknown, limit: number): JobState[] {
  const [now, ...texts] = reply as [number, ...string[]];
  return chunks(texts, TEXTS_PER_JOB).map((own, index) => readState(resources[index]!, now, own, limit));
}

function readState(resource: string, now: number, texts: readonly string[], limit: number): JobState {
  const [record, paused, history, instances] = texts as [string, string, string, string];
  const facts = record.split('\n');
  const number = (field: number): number | undefined => finite(facts[field]);
  const pause = readPause(paused);
  const stored = readRuns(history);
  const { runs, running } = readHistory(stored, number(2), limit);
  const [last, next, lastSuccessAt, statedAt] = [number(1), number(4), number(5), number(10)];
  const owed = facts[7] ? readOwed(facts[8]!) : undefined;
  const other = /^(\d+) (\d+) \d (.*)$/s.exec(facts[11] ?? '');
  const schedule = facts.slice(12).join('\n');
  // One by one: a list has a thousand of these, and spreads take far more memory.
  const state: { -readonly [K in keyof JobState]: JobState[K] } = {
    resource,
    isKnown: facts[0] !== '' || pause !== undefined || stored.length > 0,
    now,
    missed: number(6) ?? 0,
    runs,
    instances: readInstances(instances),
    instanceCount: number(3) ?? 0,
  };
  if (schedule !== '') state.schedule = schedule;
  if (next !== undefined) state.next = next;
  if (other) state.other = { since: Number(other[1]), seenAt: Number(other[2]), ...readOther(other[3]!) };
  if (last !== undefined) state.last = last;
  if (statedAt !== undefined) state.statedAt = statedAt;
  if (lastSuccessAt !== undefined) state.lastSuccessAt = lastSuccessAt;
  if (owed && owed.until >= now) state.owed = owed;
  if (pause) state.pause = pause;
  if (facts[9]) state.timedPauses = readTimedPauses(facts[9]);
  if (running) state.running = running;
  return state;
}

/** @param text the instance and its schedule */
export function readOther(text: string): ScheduleOfOther {
  const end = text.indexOf(' ');
  return { instanceId: text.slice(0, end), schedule: text.slice(end + 1) };
}

function readRuns(text: string): JobState['runs'] {
  if (text === '') return [];
  return text
    .split('\n')
    .map(readRun)
    .filter((run) => run !== undefined);
}

function readInstances(text: string): JobState['instances'] {
  if (text === '') return [];
  const lines = text.split('\n');
  return Array.from({ length: lines.length >> 1 }, (_, index) => {
    return { instanceId: lines[2 * index]!, seenAt: Number(lines[2 * index + 1]) };
  });
}

function finite(text: string | undefined): number | undefined {
  return text && /^\d+$/.test(text) ? Number(text) : undefined;
}
