#!/usr/bin/env node
import { VERSION } from '../../features/fleet/core/roll/instance-report.js';
import { runCli } from './main.js';

/** How long what a command has left open may keep the process alive. */
const LEFT_OPEN_MS = 2_000;

// The reader of a pipe may be gone: `ls | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});
process.stderr.on('error', () => {});

const { env, stdin, stdout, stderr } = process;
const argv = process.argv.slice(2);
const load = (url: string): Promise<object> => import(url) as Promise<object>;

void runCli({ argv, env, stdin, stdout, stderr, version: VERSION, load }, process).then((code) => {
  process.exitCode = code;
  setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();
});
