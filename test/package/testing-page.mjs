// The tests that docs/guide/testing.md shows, in the test runners of its readers.
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from './program.mjs';

const PAGE = fileURLToPath(new URL('../docs/testing', import.meta.url));

/**
 * Writes the tests and what they test, as `x.spec.ts`.
 *
 * @param {{ into: string, asWritten?: (text: string) => string }} where
 */
export async function writeTestingPage({ into, asWritten = (text) => text }) {
  await mkdir(into, { recursive: true });
  for (const [name, text] of await readPage()) {
    await writeFile(join(into, name.replace('.test.ts', '.spec.ts')), asWritten(text));
  }
}

/**
 * Writes the same, and one file that has all the tests: Jest loads Nest for each file, and so would node:test.
 *
 * @param {{ into: string, all: string, asWritten?: (text: string, isTest: boolean) => string }} where `all`: the name of that file
 */
export async function writeTogether({ into, all, asWritten = (text) => text }) {
  await mkdir(into, { recursive: true });
  const names = [];
  for (const [name, text] of await readPage()) {
    const isTest = name.endsWith('.test.ts');
    const written = basename(name, '.ts').replace('.', '-');
    await writeFile(join(into, `${written}.ts`), asWritten(text, isTest));
    if (isTest) names.push(written);
  }
  await writeFile(join(into, all), names.map((name) => `import './${name}.js';\n`).join(''));
}

/** For node:test, which has no globals. */
export function forNodeTest(text, isTest) {
  if (!isTest) return text;
  const used = ['afterEach', 'beforeEach', 'describe', 'it'].filter((each) => text.includes(`${each}(`));
  if (text.includes('jest.')) used.push('mock');
  return `import { ${used.join(', ')} } from 'node:test';\n${withTimersOf('node:test', text)}`;
}

/** Runs them by a command of their runner. Fails unless it says that each of them has passed. */
export async function runTestingPage(command) {
  const { code, output } = await runProgram(...command);
  assert.equal(code, 0, output);
  const texts = (await readPage()).map(([, text]) => text);
  const wanted = texts.flatMap((text) => text.match(/^ *it\(/gm) ?? []).length;
  assert.ok(wanted > 0, 'the page has no tests');
  // "Tests: 9 passed, 9 total" of Jest, "Tests  9 passed (9)" of Vitest, "# pass 9" or "ℹ pass 9" of Node.
  const [, ofRunner, ofNode] = /^\s*Tests:?\s+(\d+) passed|^\S+ pass (\d+)$/m.exec(plain(output)) ?? [];
  assert.equal(Number(ofRunner ?? ofNode), wanted, output);
}

const TIMERS = {
  vitest: { useFakeTimers: 'vi.useFakeTimers()', useRealTimers: 'vi.useRealTimers()' },
  'node:test': { useFakeTimers: 'mock.timers.enable()', useRealTimers: 'mock.timers.reset()' },
};

/** Jest's fake timers, as the page says that they are called in another runner. */
export function withTimersOf(runner, text) {
  return text
    .replace("import { jest } from '@jest/globals';\n", '')
    .replace(/\bjest\.(\w+)\(\)/g, (_, call) => TIMERS[runner][call]);
}

async function readPage() {
  const names = (await readdir(PAGE)).toSorted();
  return Promise.all(names.map(async (name) => [name, await readFile(join(PAGE, name), 'utf8')]));
}

function plain(output) {
  return output.replace(/\u001b\[[\d;]*m/g, '');
}
