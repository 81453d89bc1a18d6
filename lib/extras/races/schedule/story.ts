import { isError } from '../../../kernel/util/objects.js';

/** One step of the story of a race. */
export interface StoryStep {
  /** The name of the actor, or `time` if nothing else could happen and the clock advanced. */
  readonly actor: string;
  /** The action, in words. */
  readonly text: string;
  /** `true` if the story omits the step, because the actor only got a reply. */
  readonly isSilent: boolean;
}

export function formatInOneLine(steps: readonly StoryStep[], reason: string): string {
  const shown = steps.filter(({ isSilent }) => !isSilent).map(({ actor, text }) => lineOf(actor, text));
  return `${withoutMiddle(shown).join('; ')}: ${reason}`;
}

export function formatLines(steps: readonly StoryStep[]): string {
  const shown = steps.filter(({ isSilent }) => !isSilent);
  const width = String(shown.length).length;
  const lines = shown.map(({ actor, text }, index) => `${String(index + 1).padStart(width)}. ${lineOf(actor, text)}`);
  return withoutMiddle(lines)
    .map((line) => `  ${line}`)
    .join('\n');
}

/** Steps that are shown of the beginning, and of the end, of a long story. */
const SHOWN_AT_EACH_END = 20;

/** Drops the middle of a schedule that never ends: it repeats itself. */
function withoutMiddle(shown: readonly string[]): readonly string[] {
  const left = shown.length - 2 * SHOWN_AT_EACH_END;
  if (left <= SHOWN_AT_EACH_END) return shown;
  return [...shown.slice(0, SHOWN_AT_EACH_END), `... ${left} more steps ...`, ...shown.slice(-SHOWN_AT_EACH_END)];
}

function lineOf(actor: string, text: string): string {
  return actor === 'time' ? text : `${actor} ${text}`;
}

/** Words the time in which no actor could continue. */
export function formatTimePassed(ms: number): string {
  const rounded = Math.round(ms);
  const isSeconds = rounded > 0 && rounded % 1_000 === 0;
  const count = isSeconds ? rounded / 1_000 : rounded;
  return `${count} ${isSeconds ? 's' : 'ms'} ${count === 1 ? 'passes' : 'pass'}`;
}

/** Shorter numbers may be something else. */
const MIN_DIGITS = 10;

/**
 * Replaces fencing tokens by names: `A's token`, and `A's 2nd token`. A token of several actors gets no name.
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

/** Shortens a value for the story. */
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
