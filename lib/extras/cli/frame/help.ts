import { nearest } from '../../../kernel/api/nearest.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { Command } from './command.js';
import { COMMON_OPTIONS } from './connection.js';
import { EXIT_CODES, UsageError } from './exit-codes.js';
import type { FlagOption, OptionSpecs, ValueOption } from './options.js';

export const PROGRAM = 'nestjs-redis-lock';

/** How to write a command, without its common options: `release <resource> [--token <number>]`. */
export function usageOf(command: Command): string {
  const args = command.args.map(({ name, isRequired }) => (isRequired ? `<${name}>` : `[${name}]`));
  const options = Object.entries(command.options).map(([name, spec]) => `[${optionText(name, spec)}]`);
  const rest = command.rest === undefined ? [] : ['--', command.rest];
  return [command.name, ...args, ...options, ...rest].join(' ');
}

/** `--wait <duration>` */
export function optionText(name: string, spec: FlagOption | ValueOption<unknown>): string {
  if (spec.type === 'flag') return `--${name}`;
  return spec.isValueOptional ? `--${name} [${spec.value}]` : `--${name} <${spec.value}>`;
}

/** What the program can do. */
export function programHelp(commands: readonly Command[], version: string): string {
  return [
    `${PROGRAM} ${version}: inspect the locks, leaders and jobs of a fleet`,
    '',
    `Usage: ${PROGRAM} <command> [options]`,
    '',
    'Read-only commands:',
    columns(commands.filter(({ isWriting }) => !isWriting).map(({ name, summary }) => [name, summary])),
    '',
    'Commands that change something:',
    columns(commands.filter(({ isWriting }) => isWriting).map(({ name, summary }) => [name, summary])),
    '',
    'Options of every command:',
    optionLines(COMMON_OPTIONS),
    '',
    'Exit codes:',
    columns(Object.values(EXIT_CODES).map(({ code, summary }) => [String(code), summary])),
    '',
    `${PROGRAM} <command> --help shows the details of a command.`,
    '',
  ].join('\n');
}

export function commandHelp(command: Command): string {
  const { summary, details = [], options, examples } = command;
  const own = Object.keys(options).length === 0 ? [] : ['', 'Options:', optionLines(options)];
  return [
    summary,
    '',
    `Usage: ${PROGRAM} ${usageOf(command)}`,
    ...(details.length === 0 ? [] : ['', ...details]),
    ...own,
    '',
    'Options of every command:',
    optionLines(COMMON_OPTIONS),
    '',
    'Examples:',
    ...examples.map((example) => `  ${PROGRAM} ${example}`),
    '',
  ].join('\n');
}

/** @throws UsageError that names the nearest command */
export function findCommand(name: string, commands: readonly Command[]): Command {
  const command = commands.find((each) => each.name === name);
  if (command) return command;
  const near = nearest(
    name,
    commands.map((each) => each.name),
  );
  const hint = near === undefined ? `${PROGRAM} --help lists the commands.` : `Did you mean ${near}?`;
  throw new UsageError(`There is no command ${quote(name)}. ${hint}`);
}

function optionLines(options: OptionSpecs): string {
  return columns(Object.entries(options).map(([name, spec]) => [optionText(name, spec), spec.summary]));
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}`).join('\n');
}
