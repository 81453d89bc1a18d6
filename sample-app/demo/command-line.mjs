// @ts-check
// Runs `npx nestjs-redis-lock <command>`, like an operator does.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const BIN = fileURLToPath(new URL('../../dist/esm/cli.js', import.meta.url));

/**
 * Runs a command of the command line on the locks of the shop.
 *
 * @param {string} shop
 * @param {string[]} args
 * @returns {Promise<{ code: number, stdout: string }>}
 */
export function commandLine(shop, args) {
  const [command = '', ...rest] = args;
  const env = { ...process.env, NODE_OPTIONS: '' };
  return new Promise((resolve, reject) => {
    const typed = [BIN, command, '--prefix', `${shop}-lock`, ...rest];
    execFile(process.execPath, typed, { env, timeout: 60_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === 'number') return resolve({ code, stdout });
      reject(new Error(`${command} ended by itself: ${error?.message}\n${stderr}`));
    });
  });
}
