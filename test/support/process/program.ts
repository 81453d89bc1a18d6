import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';

/** A program in which one file of dist/modules has another text. */
export interface Replaced {
  /** Of no other change of the same program. */
  readonly name: string;
  readonly file: URL;
  readonly text: string;
}

const FOLDER = new URL('../../../node_modules/.cache/test-programs/', import.meta.url);
const bundler = fileURLToPath(new URL('program-bundler.mjs', import.meta.url));
const made = new Set<string>();

/**
 * A TypeScript program as one file, to be started with `node`. To find and to read the thousand files of Nest takes five times as
 * long as all the rest of the start, and a test may start a hundred processes. It imports the package by its name: from `dist/`.
 *
 * @returns its path
 * @throws if it does not import what is replaced
 */
export function programOf(main: URL, replaced?: Replaced): string {
  return programsOf(main, [replaced])[0]!;
}

/** The same program several times, with another file replaced in each: all of them in twice the time of one. */
export function programsOf(main: URL, variants: readonly (Replaced | undefined)[]): readonly string[] {
  const wanted = variants.map((replaced) => {
    const name = createHash('sha256').update(main.href).digest('hex').slice(0, 16);
    const program = fileURLToPath(new URL(`${name}${replaced ? `-${replaced.name}` : ''}.mjs`, FOLDER));
    return { program, ...(replaced && { file: fileURLToPath(replaced.file), text: replaced.text }) };
  });
  for (const isReplaced of [false, true]) {
    const missing = wanted.filter(({ program, file }) => !made.has(program) && (file !== undefined) === isReplaced);
    if (missing.length === 0) continue;
    const input = JSON.stringify({ main: fileURLToPath(main), variants: missing });
    execFileSync(process.execPath, [bundler], { env: { ...process.env, NODE_OPTIONS: '' }, input });
    for (const { program } of missing) made.add(program);
  }
  return wanted.map(({ program }) => program);
}
