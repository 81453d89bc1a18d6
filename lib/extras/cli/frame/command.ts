import type { ExitName } from './exit-codes.js';
import type { OptionSpecs, OptionValues } from './options.js';
import type { Output } from './output.js';
import type { Applications, Session } from './session.js';
import type { Terminal } from './terminal.js';

/** What a command works with. */
export interface CommandContext<S extends OptionSpecs = OptionSpecs> {
  /** What is given beside options, before `--`. */
  readonly args: readonly string[];
  /** The arguments after `--`, if the command takes any. */
  readonly rest: readonly string[];
  readonly options: OptionValues<S>;
  readonly output: Output;
  readonly terminal: Terminal;
  /** Aborts at Ctrl-C and at SIGTERM, unless the command handles signals itself. */
  readonly signal: AbortSignal;
  /** Runs this when the command has ended, also by a signal, before its connections are closed. */
  atEnd(cleanUp: () => Promise<void>): void;
  /** Connects, once. It is closed when the command has ended. @throws CliError when Redis cannot be reached */
  session(): Promise<Session>;
  /** Connects to several applications, at most so many, where none is stated. @throws CliError as `session` does */
  applications(most: number): Promise<Applications>;
}

/** One argument beside options. */
export interface Argument {
  readonly name: string;
  readonly isRequired?: boolean;
}

/** One command: all that help, parsing, completion and the reference say of it. */
export interface Command<S extends OptionSpecs = OptionSpecs> {
  readonly name: string;
  /** One sentence. */
  readonly summary: string;
  readonly args: readonly Argument[];
  /** What has to stand behind `--`, in the help. Not set: arguments that begin with a dash may. */
  readonly rest?: string;
  readonly options: S;
  /** Further sentences of its help. */
  readonly details?: readonly string[];
  /** Calls, without the name of the program. */
  readonly examples: readonly string[];
  /** Whether it changes something. */
  readonly isWriting?: boolean;
  /** Whether no prefix is looked for, because all who call it have to use the same one. */
  readonly isPrefixStated?: boolean;
  /** How long Redis may take without `--timeout`, where that is longer than for other commands. */
  readonly timeoutMs?: number;
  /** Whether Ctrl-C and SIGTERM are left to the command. */
  readonly handlesSignals?: boolean;
  /** @returns how it ended; a number is an exit code as it is */
  run(context: CommandContext<S>): Promise<ExitName | number>;
}

/** Checks that the command reads the options that it declares. */
export function defineCommand<const S extends OptionSpecs>(command: Command<S>): Command {
  return command as unknown as Command;
}
