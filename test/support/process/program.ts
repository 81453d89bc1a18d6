import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A program in which one file has another text. */
export interface Replaced {
  /** No other change of the same program has that name. */
  readonly name: string;
  readonly file: URL;
  readonly text: string;
}

/** What stands beside a program. */
interface Recipe {
  /** Of all that is no file: see `changes`. */
  readonly changes: string;
  /** Path, size and time of the last change of everything that it is made of. */
  readonly inputs: readonly (readonly [string, number, number])[];
}

const FOLDER = new URL('../../../node_modules/.cache/test-programs/', import.meta.url);
const bundler = fileURLToPath(new URL('program-bundler.mjs', import.meta.url));
const compiler = fileURLToPath(new URL('compile-typescript.mjs', import.meta.url));
const ready = new Map<string, string>();

/**
 * A TypeScript program as one file, to be started with `node`. A test may start a hundred processes, and to find and to read
 * the thousand files of Nest takes each of them longer than all that it is there for. It imports the package by its name: what is
 * published, or `dist/modules` where a file is replaced. Made anew whenever something that it is made of has changed.
 *
 * @returns its path
 * @throws where it does not import what is replaced
 */
export function programOf(main: URL, replaced?: Replaced): string {
  return programsOf(main, [replaced])[0]!;
}

/** The same program several times, with another file replaced in each: much faster than one after the other. */
export function programsOf(main: URL, variants: readonly (Replaced | undefined)[]): readonly string[] {
  const path = fileURLToPath(main);
  const madeBy = [bundler, compiler].map((file) => readFileSync(file, 'utf8'));
  const wanted = variants.map((variant) => {
    const replaced = variant ? { file: fileURLToPath(variant.file), text: variant.text } : null;
    const name = `${hash(path).slice(0, 16)}${variant ? `-${variant.name}` : ''}`;
    const program = fileURLToPath(new URL(`${name}.mjs`, FOLDER));
    return { program, replaced, changes: JSON.stringify(replaced) };
  });
  const missing = wanted
    .filter(({ program, changes }) => ready.get(program) !== changes)
    .map(({ changes, ...rest }) => ({ ...rest, changes: hash([...madeBy, changes].join('\0')) }))
    .filter(({ program, changes }) => !isUpToDate(program, changes));
  if (missing.length > 0) {
    const env = { ...process.env, NODE_OPTIONS: '' };
    execFileSync(process.execPath, [bundler, path], { env, input: JSON.stringify(missing) });
  }
  for (const { program, changes } of wanted) ready.set(program, changes);
  return wanted.map(({ program }) => program);
}

function isUpToDate(program: string, changes: string): boolean {
  const recipe = `${program}.json`;
  if (!existsSync(program) || !existsSync(recipe)) return false;
  const made = JSON.parse(readFileSync(recipe, 'utf8')) as Recipe;
  return (
    made.changes === changes &&
    made.inputs.every(([path, size, mtimeMs]) => {
      const stats = statSync(path, { throwIfNoEntry: false });
      return stats?.size === size && stats.mtimeMs === mtimeMs;
    })
  );
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
