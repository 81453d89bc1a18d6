import { createHash } from 'node:crypto';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { describeValue } from '../../core/api/validation.js';
import type { Choice } from './schedule/schedule.js';

/** The numbers of the choices of a schedule, where there was a choice, and a check of the names of its steps. */
export interface ScheduleSeed {
  readonly numbers: readonly number[];
  readonly check: string;
}

/** Writes down the schedule that is run, so that it can be run again. */
export class ScheduleRecord {
  readonly numbers: number[] = [];
  readonly #names: string[] = [];

  add(choices: readonly Choice[], chosen: Choice): void {
    if (choices.length > 1) this.numbers.push(choices.indexOf(chosen));
    this.#names.push(`${chosen.id} ${chosen.text}`);
  }

  get check(): string {
    return createHash('sha1').update(this.#names.join('\n')).digest('hex').slice(0, 6);
  }

  /** The text of the option `seed`. */
  get seed(): string {
    return `${this.numbers.map((number) => number.toString(36)).join('.')}-${this.check}`;
  }
}

/** @throws InvalidLockOptionsError */
export function readSeed(text: string): ScheduleSeed {
  const [, digits, check] = /^([0-9a-z.]*)-([0-9a-f]{6})$/.exec(text) ?? [];
  if (digits === undefined || check === undefined) {
    throw new InvalidLockOptionsError(
      `seed must be an integer, or the text in \`seed\` of a RaceFoundError, not ${describeValue(text)}.`,
      'seed',
    );
  }
  return { numbers: digits === '' ? [] : digits.split('.').map((digit) => parseInt(digit, 36)), check };
}
