#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { runCli } from './main.js';

/** How long what a command has left open may keep the process alive. */
const LEFT_OPEN_MS = 2_000;

// The reader of a pipe may be gone: `ls | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});
process.stderr.on('error', () => {});

// From dist/esm/cli.js, where this program runs, not from this file.
const manifest = new URL('../../package.json', import.meta.url);
const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
const { env, stdin, stdout, stderr } = process;
const argv = process.argv.slice(2);
const load = (url: string): Promise<object> => import(url) as Promise<object>;

void runCli({ argv, env, stdin, stdout, stderr, version, load }, process).then((code) => {
  process.exitCode = code;
  setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();
});
