import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { Form } from './run/faults-part.js';

/** The parts of a run. */
export const PARTS = ['faults', 'topologies', 'mutants', 'cron'] as const;
export type Part = (typeof PARTS)[number];

export const options = `npm run chaos -- [options]
  --form long|short    how much of everything (default: long, about an hour)
  --seed <number>      what happens, and in which order (default: by chance, and told)
  --part <name>        only this part; may be given several times: ${PARTS.join(', ')}
  --mutant <name>      only this broken variant, or the library itself in the world of this name, such as rush
  --histories <folder> writes the history of each chapter and each mutant there, for checkers of other people
  --chapter <text>     of faults and topologies only the chapters whose title has this text
  --lanes <number>     how many chapters go on at the same time (default: 2)`;

export interface ChaosOptions {
  readonly help: boolean;
  readonly form: Form;
  readonly seed: number;
  readonly names: readonly Part[];
  readonly chapter: string;
  readonly mutant: string | undefined;
  readonly histories: string | undefined;
  readonly lanes: number;
}

/** @throws Error with the wrong argument and the allowed ones */
export function readOptions(args: string[]): ChaosOptions {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', default: false },
      form: { type: 'string', default: 'long' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      part: { type: 'string', multiple: true },
      mutant: { type: 'string' },
      histories: { type: 'string' },
      chapter: { type: 'string', default: '' },
      lanes: { type: 'string', default: '2' },
    },
  });
  const { help, form, seed, mutant, histories, chapter, lanes } = values;
  const names = values.part ?? (mutant === undefined ? PARTS : ['mutants']);
  if (form !== 'short' && form !== 'long') throw wrong('--form', form, 'short or long');
  const unknown = names.find((name) => !isPart(name));
  if (unknown !== undefined) throw wrong('--part', unknown, `one of ${PARTS.join(', ')}`);
  return {
    help,
    form,
    seed: integer('--seed', seed, 0),
    names: names.filter(isPart),
    chapter,
    mutant,
    histories,
    lanes: integer('--lanes', lanes, 1),
  };
}

function integer(option: string, text: string, least: number): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < least) throw wrong(option, text, `an integer, ${least} or more`);
  return value;
}

function wrong(option: string, value: string, allowed: string): Error {
  return new Error(`${option} must be ${allowed}, not ${JSON.stringify(value)}.`);
}

function isPart(name: string): name is Part {
  return (PARTS as readonly string[]).includes(name);
}
