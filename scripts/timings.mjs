// npm run timings                       measures each command three times, and keeps what it took: test/timings.json, and the table in
//                                       CONTRIBUTING.md. An hour and a half; the machine should have nothing else to do
// npm run timings -- check test         these commands alone: check, test, all, ci
// npm run timings -- --times 1 check    how often
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inForeground, runCommand } from './command.mjs';
import { root, setUp } from './setup.mjs';
import { inWords, median, readTimings, withMeasured, writeTimings } from './timings/kept.mjs';

/** What is typed, and how it is run. What CI runs begins with a clone. */
const COMMANDS = {
  check: { typed: 'npm run check', run: (env) => inForeground('npm', ['run', 'check'], { cwd: root, env }) },
  test: { typed: 'npm test', run: (env) => inForeground('npm', ['test'], { cwd: root, env }) },
  all: { typed: 'npm run test:all', run: (env) => inForeground('npm', ['run', 'test:all'], { cwd: root, env }) },
  ci: { typed: '.ci/run --all', run: inAClone },
};

async function inAClone(env) {
  const folder = mkdtempSync(join(tmpdir(), 'timings-clone-'));
  try {
    spawnSync('git', ['clone', '--quiet', root, folder], { stdio: 'inherit' });
    return await inForeground(join(folder, '.ci/run'), ['--all'], { cwd: folder, env });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await runCommand(async () => {
  const { values, positionals } = parseArgs({
    options: { times: { type: 'string', default: '3' } },
    allowPositionals: true,
  });
  const names = positionals.length > 0 ? positionals : Object.keys(COMMANDS);
  const unknown = names.filter((name) => !(name in COMMANDS));
  const times = Number(values.times);
  if (unknown.length > 0 || !Number.isInteger(times) || times < 1) {
    console.error(`npm run timings -- [--times <count>] [${Object.keys(COMMANDS).join(' | ')}]...`);
    return 2;
  }
  await setUp({ ownServer: true });
  const measured = await measure(names, times);
  if (measured === undefined) return 1;
  keep(measured);
  return 0;
});

async function measure(names, times) {
  const folder = mkdtempSync(join(tmpdir(), 'timings-'));
  const record = join(folder, 'files.jsonl');
  const commands = {};
  try {
    for (let round = 1; round <= times; round++) {
      for (const name of names) {
        const { typed, run } = COMMANDS[name];
        const from = performance.now();
        if ((await run({ ...process.env, TIMINGS_RECORD: record })) !== 0) {
          console.error(`${typed} failed: nothing is kept.`);
          return undefined;
        }
        const seconds = Math.round((performance.now() - from) / 1_000);
        (commands[typed] ??= []).push(seconds);
        console.log(`\n${typed}, round ${round} of ${times}: ${inWords(seconds)}\n`);
      }
    }
    return { commands, files: secondsOfFiles(record) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function secondsOfFiles(record) {
  const runs = {};
  for (const line of readFileSync(record, 'utf8').trimEnd().split('\n')) {
    for (const [file, seconds] of Object.entries(JSON.parse(line))) (runs[file] ??= []).push(seconds);
  }
  return Object.fromEntries(Object.entries(runs).map(([file, seconds]) => [file, Number(median(seconds).toFixed(2))]));
}

/** Files that these commands did not run keep what they have, while they exist. */
function keep({ commands, files }) {
  const kept = readTimings();
  const existing = Object.entries({ ...kept.files, ...files }).filter(([file]) => existsSync(join(root, file)));
  const timings = {
    cores: cpus().length,
    commands: { ...kept.commands, ...commands },
    files: Object.fromEntries(existing),
  };
  writeTimings(timings);
  const page = join(root, 'CONTRIBUTING.md');
  writeFileSync(page, withMeasured(readFileSync(page, 'utf8'), timings));
  const oxfmt = join(root, 'node_modules/oxfmt/bin/oxfmt');
  spawnSync(process.execPath, [oxfmt, page, join(root, 'test/timings.json')], { cwd: root, stdio: 'inherit' });
}
