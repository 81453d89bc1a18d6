import { parseArgs } from 'node:util';
import { nearest } from '../../../kernel/api/nearest.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { Command } from './command.js';
import { UsageError } from './exit-codes.js';
import type { OptionSpecs } from './options.js';

/** A command line, read. */
interface ParsedLine {
  readonly args: readonly string[];
  readonly rest: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
}

/** The first word that is no option, and no value of one. */
export function commandNameIn(argv: readonly string[], common: OptionSpecs): string | undefined {
  const [first] = tokensOf(argv, common).flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
  return first;
}

/**
 * Reads what is given to a command.
 *
 * @param argv with the name of the command in it
 * @throws UsageError with the right form
 */
export function parseLine(argv: readonly string[], command: Command, common: OptionSpecs): ParsedLine {
  const specs = { ...common, ...command.options };
  const options: Record<string, unknown> = Object.fromEntries(
    Object.entries(specs).map(([name, { type }]) => [name, type === 'flag' ? false : undefined]),
  );
  const args: string[] = [];
  const rest: string[] = [];
  let isRest = false;
  for (const token of tokensOf(argv, specs)) {
    if (token.kind === 'option-terminator') isRest = command.rest !== undefined;
    else if (token.kind === 'positional') (isRest ? rest : args).push(token.value);
    else options[token.name] = readOption(token, specs, command);
  }
  args.shift();
  checkArguments(args, rest, command);
  return { args, rest, options };
}

interface OptionToken {
  readonly kind: 'option';
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}
type Token =
  | OptionToken
  | { readonly kind: 'positional'; readonly value: string }
  | { readonly kind: 'option-terminator' };

function tokensOf(argv: readonly string[], specs: OptionSpecs): readonly Token[] {
  const { tokens } = parseArgs({
    args: argv.map((arg, index) => withValue(arg, argv[index + 1], specs)),
    options: {
      ...Object.fromEntries(
        Object.entries(specs).map(([name, { type }]) => [name, { type: type === 'flag' ? 'boolean' : 'string' }]),
      ),
      help: { type: 'boolean', short: 'h' },
    } as Record<string, { type: 'boolean' | 'string'; short?: string }>,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  return tokens as readonly Token[];
}

/** An option whose value was left out gets an empty one, so that it does not take the next word. */
function withValue(arg: string, next: string | undefined, specs: OptionSpecs): string {
  const spec = arg.startsWith('--') && Object.hasOwn(specs, arg.slice(2)) ? specs[arg.slice(2)] : undefined;
  const isLeftOut = next === undefined || next.startsWith('-');
  return spec?.type === 'value' && spec.isValueOptional && isLeftOut ? `${arg}=` : arg;
}

function readOption({ name, rawName, value, inlineValue }: OptionToken, specs: OptionSpecs, command: Command): unknown {
  const spec = Object.hasOwn(specs, name) ? specs[name] : undefined;
  if (!spec) {
    const near = nearest(name, Object.keys(specs));
    const hint = near === undefined ? `See nestjs-redis-lock ${command.name} --help.` : `Did you mean --${near}?`;
    throw new UsageError(`${command.name} has no option ${quote(rawName)}. ${hint}`);
  }
  if (spec.type === 'flag') {
    if (value === undefined) return true;
    throw new UsageError(`--${name} takes no value.`);
  }
  if (value === '' && spec.isValueOptional) return spec.read('', name);
  if (value === undefined || value === '' || (!inlineValue && value.startsWith('-'))) {
    throw new UsageError(`--${name} needs a value: --${name} <${spec.value}>.`);
  }
  return spec.read(value, name);
}

function checkArguments(args: readonly string[], rest: readonly string[], command: Command): void {
  const missing = command.args[args.length];
  if (missing?.isRequired) throw new UsageError(`${command.name} needs a ${missing.name}.`);
  if (args.length > command.args.length) {
    throw new UsageError(`${command.name} takes no argument ${quote(args[command.args.length]!)}.`);
  }
  if (command.rest !== undefined && (rest.length === 0 || rest[0] === '')) {
    throw new UsageError(
      `${command.name} needs a command after --: ${command.name} … -- ${command.rest}. If you passed a shell variable, check that it is set.`,
    );
  }
}
