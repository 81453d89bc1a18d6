import { isError } from '../../../kernel/util/objects.js';

/** One step of the story of a race. */
export interface StoryStep {
  /** Which actor; `time` where nothing could go on but time. */
  readonly actor: string;
  /** What it did. */
  readonly text: string;
  /** Whether the story leaves it out: the actor only heard an answer. */
  readonly isSilent: boolean;
}

export function tellInOneLine(steps: readonly StoryStep[], reason: string): string {
  const told = steps.filter(({ isSilent }) => !isSilent).map(({ actor, text }) => tell(actor, text));
  return `${withoutMiddle(told).join('; ')}: ${reason}`;
}

/** The steps, each on a line. */
export function tellInLines(steps: readonly StoryStep[]): string {
  const told = steps.filter(({ isSilent }) => !isSilent);
  const width = String(told.length).length;
  const lines = told.map(({ actor, text }, index) => `${String(index + 1).padStart(width)}. ${tell(actor, text)}`);
  return withoutMiddle(lines)
    .map((line) => `  ${line}`)
    .join('\n');
}

/** How many steps of a long story are told of its beginning, and of its end. */
const TOLD_OF_EACH_END = 20;

/** A schedule that never ends goes round: how it began and ended tells it. */
function withoutMiddle(told: readonly string[]): readonly string[] {
  const left = told.length - 2 * TOLD_OF_EACH_END;
  if (left <= TOLD_OF_EACH_END) return told;
  return [...told.slice(0, TOLD_OF_EACH_END), `... ${left} more steps ...`, ...told.slice(-TOLD_OF_EACH_END)];
}

function tell(actor: string, text: string): string {
  return actor === 'time' ? text : `${actor} ${text}`;
}

/** How long no actor could go on. */
export function tellTime(ms: number): string {
  const whole = Math.round(ms);
  const isSeconds = whole > 0 && whole % 1_000 === 0;
  const count = isSeconds ? whole / 1_000 : whole;
  return `${count} ${isSeconds ? 's' : 'ms'} ${count === 1 ? 'passes' : 'pass'}`;
}

/** Shorter numbers may mean something else. */
const MIN_DIGITS = 10;

/**
 * Puts names in place of fencing tokens: `A's token`, and `A's 2nd token`. One that several actors have is not named.
 *
 * @param tokens the actors that were granted each token, in the order of the grants
 */
export function nameTokens(tokens: ReadonlyMap<number, ReadonlySet<string>>): (text: string) => string {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  for (const [token, actors] of tokens) {
    const [actor] = actors;
    if (actor === undefined || actors.size > 1 || String(token).length < MIN_DIGITS) continue;
    const count = (counts.get(actor) ?? 0) + 1;
    counts.set(actor, count);
    names.set(String(token), `${actor}'s ${count === 1 ? '' : `${ordinal(count)} `}token`);
  }
  return (text) => text.replace(/(?<![\w.-])\d+(?![\w.])/g, (digits) => names.get(digits) ?? digits);
}

function ordinal(count: number): string {
  const isTeen = count % 100 > 10 && count % 100 < 14;
  const ending = isTeen ? undefined : { 1: 'st', 2: 'nd', 3: 'rd' }[count % 10];
  return `${count}${ending ?? 'th'}`;
}

const LONGEST = 60;

/** A value in a few words. */
export function brief(value: unknown): string {
  const text = inWords(value);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}

function inWords(value: unknown): string {
  if (isError(value)) return `${value.name}: ${value.message.split('\n')[0]}`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return `[function ${value.name}]`;
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return JSON.stringify(value) ?? 'an object';
  } catch {
    return 'an object';
  }
}
