// Runs one command of the set-up and shows that it is alive: its title at once, the elapsed time while it runs, and its
// output only if it fails.
import { spawn } from 'node:child_process';
import { SetupError } from './setup-error.mjs';

const SHOWN_LINES = 25;

export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** @returns {Promise<void>} rejects with a SetupError that has the output of the command */
export async function runStep(title, command, args, { cwd, env = process.env } = {}) {
  const stopTicking = tick(title);
  const { failure, output } = await run(command, args, { cwd, env });
  stopTicking(failure === undefined ? 'done' : 'failed');
  if (failure !== undefined) {
    throw new SetupError(`${title}: ${failure}\n  ${[command, ...args].join(' ')}\n${ends(output)}`);
  }
}

/** Some programs give the reason first, others last. */
function ends(output) {
  const lines = output.trimEnd().split('\n');
  if (lines.length <= 2 * SHOWN_LINES) return lines.join('\n');
  return [...lines.slice(0, SHOWN_LINES), '...', ...lines.slice(-SHOWN_LINES)].join('\n');
}

function run(command, args, options) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => {
      resolve({ failure: error.code === 'ENOENT' ? `${command} was not found on PATH` : error.message, output });
    });
    child.on('close', (code, signal) => {
      resolve({ failure: code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`, output });
    });
  });
}

/** A terminal sees one line that counts up; a log file gets a line every ten seconds. */
function tick(title) {
  const startedAt = Date.now();
  const elapsed = () => `${Math.round((Date.now() - startedAt) / 1000)} s`;
  const live = process.stderr.isTTY;
  const write = (state) => process.stderr.write(live ? `\r\x1b[K  ${title} ... ${state}` : `  ${title} ... ${state}\n`);
  write(live ? '' : 'started');
  const timer = setInterval(() => write(elapsed()), live ? 1_000 : 10_000);
  return (state) => {
    clearInterval(timer);
    write(`${state} (${elapsed()})`);
    if (live) process.stderr.write('\n');
  };
}
