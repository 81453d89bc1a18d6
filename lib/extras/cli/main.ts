import type { Command } from './frame/command.js';
import { COMMANDS } from './commands.js';
import {
  COMMON_OPTIONS,
  type CommonOptions,
  DEFAULT_PREFIX,
  readTarget,
  RESTART_QUARANTINE,
} from './frame/connection.js';
import { asCliError, EXIT_CODES } from './frame/exit-codes.js';
import { commandHelp, findCommand, programHelp } from './frame/help.js';
import { Output } from './frame/output.js';
import { commandNameIn, parseLine } from './frame/parse.js';
import { type Applications, DEFAULT_TIMEOUT_MS, openApplications, type Session } from './frame/session.js';
import { type CliProcess, Terminal } from './frame/terminal.js';

/** Ends at a signal: 128 and its number, as shells do. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const;

/** The signals that the process around a call gets. */
interface SignalSource {
  on(signal: keyof typeof SIGNALS, listener: () => void): unknown;
  off(signal: keyof typeof SIGNALS, listener: () => void): unknown;
}

/**
 * Runs one command line. Nothing is thrown: what is wrong stands on stderr.
 *
 * @returns the exit code
 */
export async function runCli(cli: CliProcess, signals?: SignalSource): Promise<number> {
  const terminal = new Terminal(cli);
  const output = new Output(cli, terminal, false);
  try {
    const line = beforeRest(cli.argv);
    if (line.includes('--version')) return print(output, `${cli.version}\n`);
    const name = commandNameIn(cli.argv, COMMON_OPTIONS);
    const isHelp = line.includes('--help') || line.includes('-h') || name === 'help';
    const asked = name === 'help' ? commandNameIn(cli.argv.slice(cli.argv.indexOf('help') + 1), COMMON_OPTIONS) : name;
    if (asked === undefined) {
      const help = programHelp(COMMANDS, cli.version);
      if (isHelp) return print(output, help);
      output.note('A command is missing.');
      cli.stderr.write(help);
      return EXIT_CODES.usage.code;
    }
    const command = findCommand(asked, COMMANDS);
    return isHelp ? print(output, commandHelp(command)) : await runCommand(command, cli, signals, terminal);
  } catch (error) {
    return fail(output, error);
  }
}

async function runCommand(
  command: Command,
  cli: CliProcess,
  signals: SignalSource | undefined,
  terminal: Terminal,
): Promise<number> {
  const parsed = parseLine(cli.argv, command, COMMON_OPTIONS);
  const common = parsed.options as unknown as CommonOptions;
  const output = new Output(cli, terminal, common.json);
  const stop = new Stop(command.handlesSignals ? undefined : signals);
  let opening: Promise<Applications> | undefined;
  let isOpen = false;
  const cleanUps: (() => Promise<void>)[] = [];
  const applications = (most: number): Promise<Applications> => {
    const note = (line: string): void => output.note(line);
    terminal.progress('Connecting to Redis …');
    opening ??= readTarget(common, cli, note).then((target) =>
      openApplications(
        {
          ...target,
          ...(command.isPrefixStated && { keyPrefix: target.keyPrefix ?? DEFAULT_PREFIX }),
          restartQuarantineMs: parsed.options[RESTART_QUARANTINE] as number | undefined,
        },
        common.timeout ?? command.timeoutMs ?? DEFAULT_TIMEOUT_MS,
        most,
        note,
      ),
    );
    const tried = opening;
    return tried.then(
      (opened) => {
        isOpen = true;
        terminal.endProgress();
        return opened;
      },
      (error: unknown) => {
        // The next call tries again.
        if (opening === tried) opening = undefined;
        terminal.endProgress();
        throw error;
      },
    );
  };
  const session = async (): Promise<Session> => (await applications(1)).sessions[0]!;
  try {
    const { args, rest, options } = parsed;
    const { signal } = stop;
    const atEnd = (cleanUp: () => Promise<void>): void => void cleanUps.push(cleanUp);
    const context = { args, rest, options, output, terminal, signal, atEnd, session, applications };
    const ended = command.run(context as never);
    const outcome = await Promise.race([ended, stop.code]);
    return typeof outcome === 'number' ? outcome : EXIT_CODES[outcome].code;
  } catch (error) {
    if (stop.signal.aborted) return await stop.code;
    return fail(output, error);
  } finally {
    terminal.endProgress();
    stop.end();
    for (const cleanUp of cleanUps) await cleanUp();
    const closed = opening?.then(
      ({ sessions }) => Promise.all(sessions.map((each) => each.close())),
      () => undefined,
    );
    // A command that a signal has ended does not wait for a Redis that does not answer.
    if (isOpen) await closed;
  }
}

/** Ctrl-C or SIGTERM. The second one ends the process at once, as if none was handled. */
class Stop {
  /** Resolves to the exit code. */
  readonly code: Promise<number>;
  readonly #abort = new AbortController();
  readonly #listeners = new Map<keyof typeof SIGNALS, () => void>();

  constructor(private readonly signals: SignalSource | undefined) {
    this.code = new Promise((resolve) => {
      for (const [signal, code] of Object.entries(SIGNALS) as [keyof typeof SIGNALS, number][]) {
        const listener = (): void => {
          this.end();
          this.#abort.abort();
          resolve(code);
        };
        this.#listeners.set(signal, listener);
        signals?.on(signal, listener);
      }
    });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  end(): void {
    for (const [signal, listener] of this.#listeners) this.signals?.off(signal, listener);
  }
}

function fail(output: Output, error: unknown): number {
  const { exit, message } = asCliError(error);
  output.note(message);
  return EXIT_CODES[exit].code;
}

function print(output: Output, text: string): number {
  output.text(text);
  return EXIT_CODES.done.code;
}

/** What is not the command line of another program. */
function beforeRest(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end === -1 ? argv : argv.slice(0, end);
}
