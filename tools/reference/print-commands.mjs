// Prints the table of commands as JSON. Run with the loader of TypeScript: see commands.mjs.
import { COMMANDS } from '../../lib/extras/cli/commands.ts';
import { COMMON_OPTIONS } from '../../lib/extras/cli/frame/connection.ts';
import { EXIT_CODES } from '../../lib/extras/cli/frame/exit-codes.ts';
import { optionText, PROGRAM, usageOf } from '../../lib/extras/cli/frame/help.ts';

const optionsOf = (options) =>
  Object.entries(options).map(([name, spec]) => ({ text: optionText(name, spec), summary: spec.summary }));

const commands = COMMANDS.map((command) => ({
  name: command.name,
  usage: `${PROGRAM} ${usageOf(command)}`,
  summary: command.summary,
  details: command.details ?? [],
  options: optionsOf(command.options),
  examples: command.examples.map((example) => `npx ${PROGRAM} ${example}`),
}));
console.log(
  JSON.stringify({ commands, commonOptions: optionsOf(COMMON_OPTIONS), exitCodes: Object.values(EXIT_CODES) }),
);
