// Reads the table of the command line, which is a value and not a type: a process of its own loads the sources.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const LOADER = new URL('../../test/support/process/typescript-loader.mjs', import.meta.url).href;
const PRINTER = fileURLToPath(new URL('print-commands.mjs', import.meta.url));

/**
 * @typedef {{ text: string, summary: string }} CommandOption
 * @typedef {object} CommandPage
 * @property {string} name
 * @property {string} usage
 * @property {string} summary
 * @property {string[]} details
 * @property {CommandOption[]} options
 * @property {string[]} examples
 */

/**
 * @returns {{ commands: CommandPage[], commonOptions: CommandOption[], exitCodes: { code: number, summary: string }[] }}
 */
export function readCommands() {
  const env = { ...process.env, NODE_OPTIONS: '' };
  return JSON.parse(execFileSync(process.execPath, ['--import', LOADER, PRINTER], { encoding: 'utf8', env }));
}
