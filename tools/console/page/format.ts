// Numbers, times and names as text.
import { longDuration } from '../../../lib/kernel/util/durations.js';
import { type Child, h, type Tree } from './dom.js';

export const count = (value: number): string => value.toLocaleString();

/** `1 call`, `7 calls`. */
export const plural = (value: number, word: string): string => `${count(value)} ${word}${value === 1 ? '' : 's'}`;

/** A duration that goes on: whole seconds, so that it counts evenly. */
export const span = (ms: number): string => (ms < 1_000 ? '< 1 s' : took(Math.floor(ms / 1_000) * 1_000));

/** A duration that has ended: as exact as it is known. */
export const took = (ms: number): string => longDuration(ms).replaceAll(' ', '\u00a0');

/** The local time, and the day if it is not today. */
export function clock(at: number, today = Date.now()): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(today).toDateString();
  const day = isToday ? '' : `${date.toLocaleDateString([], { weekday: 'short', day: 'numeric', month: 'short' })}, `;
  return day + date.toLocaleTimeString();
}

/** A point in time: the local time with its day, and UTC, in the title. */
export function time(at: number, text: string): Tree {
  const date = new Date(at);
  return h(
    'time',
    { datetime: date.toISOString(), title: `${date.toLocaleString()} here, ${date.toUTCString()}` },
    text,
  );
}

export const ago = (at: number, now: number): Tree => time(at, `${span(now - at)} ago`);

/** The time until now. */
export const since = (at: number, now: number): Tree => time(at, span(now - at));

export const moment = (at: number, now: number): Tree => time(at, clock(at, now));

export const name = (text: string): Tree => h('span.name', text);

/** Names, with commas. */
export const names = (all: readonly string[]): Child => all.map((each, place) => [place > 0 && ', ', name(each)]);

/** A mark and a word beside the colour: `bad does not answer`. */
export function state(text: string, tag = 'span'): Tree {
  const [kind = '', ...words] = text.split(' ');
  return h(`${tag}.state.${kind}`, words.join(' '));
}
