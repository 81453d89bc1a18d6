import { defineCommand, type Command } from '../frame/command.js';
import { COMMON_OPTIONS } from '../frame/connection.js';
import { UsageError } from '../frame/exit-codes.js';
import { PROGRAM } from '../frame/help.js';

const SHELLS = { bash, zsh, fish } as const;

/** @param commands all of them; a function, because this one is among them */
export function completion(commands: () => readonly Command[]): Command {
  return defineCommand({
    name: 'completion',
    summary: 'Prints a script that completes commands and options in your shell.',
    args: [{ name: 'bash|zsh|fish', isRequired: true }],
    options: {},
    examples: ['completion bash > ~/.local/share/bash-completion/completions/nestjs-redis-lock'],
    async run({ args, output }) {
      const [shell] = args as [string];
      if (!Object.hasOwn(SHELLS, shell)) {
        throw new UsageError(`completion supports ${Object.keys(SHELLS).join(', ')}, not ${JSON.stringify(shell)}.`);
      }
      const script = SHELLS[shell as keyof typeof SHELLS](commands());
      if (output.format === 'json') output.printJson({ shell, script });
      else output.text(script);
      return 'done';
    },
  });
}

function optionsOf(command: Command): string[] {
  return Object.keys({ ...command.options, ...COMMON_OPTIONS, help: true }).map((name) => `--${name}`);
}

function bash(commands: readonly Command[]): string {
  return [
    `_${functionName}() {`,
    '  local current=${COMP_WORDS[COMP_CWORD]} words',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    words="${commands.map(({ name }) => name).join(' ')}"`,
    '  else',
    '    case "${COMP_WORDS[1]}" in',
    ...commands.map((command) => `      ${command.name}) words="${optionsOf(command).join(' ')}" ;;`),
    '    esac',
    '  fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '}',
    `complete -o default -F _${functionName} ${PROGRAM}`,
  ].join('\n');
}

function zsh(commands: readonly Command[]): string {
  return `autoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
}

function fish(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => [
    `complete -c ${PROGRAM} -n __fish_use_subcommand -f -a ${command.name} -d '${command.summary.replaceAll("'", "\\'")}'`,
    ...Object.entries({ ...command.options, ...COMMON_OPTIONS }).map(
      ([name, { summary }]) =>
        `complete -c ${PROGRAM} -n '__fish_seen_subcommand_from ${command.name}' -l ${name} -d '${summary.replaceAll("'", "\\'")}'`,
    ),
  ]);
  return lines.join('\n');
}

const functionName = PROGRAM.replaceAll('-', '_');
