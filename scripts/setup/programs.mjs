// Which programs this machine has.
import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const ANSWER_MS = 10_000;

const run = promisify(execFile);

/** @returns {Promise<string | undefined>} the absolute path of a program on PATH */
export async function findOnPath(program, env) {
  for (const folder of (env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = join(folder, program);
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

export function isExecutable(path) {
  return succeeds(access(path, constants.X_OK));
}

/** Returns true if a quick question to a program ends with exit code 0. */
export function answers(program, args, { env }) {
  return succeeds(run(program, args, { env, timeout: ANSWER_MS }));
}

function succeeds(promise) {
  return promise.then(
    () => true,
    () => false,
  );
}
