import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { claimFile } from '../../../scripts/setup/claimed-file.mjs';

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

const ROOT = new URL('../../../', import.meta.url);
const FOLDER = new URL('node_modules/.cache/test-programs/', ROOT);
/** Whose process id is in it makes programs. */
const MAKER = fileURLToPath(new URL('maker', FOLDER));
const bundler = fileURLToPath(new URL('program-bundler.mjs', import.meta.url));
const compiler = fileURLToPath(new URL('compile-typescript.mjs', import.meta.url));
const ready = new Map<string, string>();
/** The texts of what makes them. */
let madeBy: string | undefined;

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
  const wanted = variants.map((variant) => wantedOf(main, variant));
  let missing = missingOf(wanted);
  if (missing.some(({ replaced }) => replaced === null)) {
    makeWithOthers(missing);
    missing = missingOf(missing);
  }
  make(missing);
  for (const { program, changes } of wanted) ready.set(program, changes);
  return wanted.map(({ program }) => program);
}

/** What is asked of the bundler. */
interface Wanted {
  readonly main: string;
  readonly program: string;
  readonly replaced: { readonly file: string; readonly text: string } | null;
  /** Of all that is no file. */
  readonly changes: string;
}

function wantedOf(main: URL, variant?: Replaced): Wanted {
  const path = fileURLToPath(main);
  const replaced = variant ? { file: fileURLToPath(variant.file), text: variant.text } : null;
  const name = `${hash(path).slice(0, 16)}${variant ? `-${variant.name}` : ''}`;
  madeBy ??= [bundler, compiler].map((file) => readFileSync(file, 'utf8')).join('\0');
  const changes = hash([madeBy, JSON.stringify(replaced)].join('\0'));
  return { main: path, program: fileURLToPath(new URL(`${name}.mjs`, FOLDER)), replaced, changes };
}

function missingOf(wanted: readonly Wanted[]): Wanted[] {
  return wanted.filter(({ program, changes }) => ready.get(program) !== changes && !isUpToDate(program, changes));
}

function make(wanted: readonly Wanted[]): void {
  if (wanted.length === 0) return;
  const env = { ...process.env, NODE_OPTIONS: '' };
  execFileSync(process.execPath, [bundler], { env, input: JSON.stringify(wanted) });
}

/**
 * Those of the repository that no stack has. They import the same files, so all of them are made in the time of two. One process
 * makes them, and others that need one wait for it.
 */
function makeWithOthers(wanted: readonly Wanted[]): void {
  const others = mains().map((main) => wantedOf(main));
  if (!wanted.some(({ main }) => others.some((other) => other.main === main))) return;
  while (!claimFile(MAKER)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
  try {
    make(missingOf(others));
  } catch {
    // One of them is broken: whoever wants that one is told.
  } finally {
    rmSync(MAKER, { force: true });
  }
}

function mains(): URL[] {
  const found = ['test/nest', 'test/redis', 'test/support/process', 'tools/chaos'].flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, ROOT), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('-main.ts'))
      .map((file) => `${folder}/${file}`),
  );
  return ['lib/cli/bin.ts', ...found].map((file) => new URL(file, ROOT));
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
