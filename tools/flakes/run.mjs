// npm run flakes: which tests fail by chance? Runs them again and again, on a machine that is busy and stands still. See options.mjs.
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../scripts/command.mjs';
import { jest } from '../../scripts/jest.mjs';
import { root, setUp } from '../../scripts/setup.mjs';
import { environmentOf } from '../../scripts/setup/find-redis.mjs';
import { readOptions, USAGE } from './options.mjs';
import { runningTree, signalAll } from './process-tree.mjs';
import { standStill } from './stops.mjs';
import { failuresIn, summaryOf } from './summary.mjs';

const BUSY = 'for (;;) Math.random();';

await runCommand(async () => {
  const options = readOptions(process.argv.slice(2));
  if (options.help) return console.log(USAGE) ?? 0;
  const redis = await setUp({ ownServer: true });
  const env = { ...process.env, ...environmentOf(redis) };
  console.log(`${options.rounds} rounds from seed ${options.seed}, beside ${options.busy} busy processes`);

  const busy = Array.from({ length: options.busy }, () => spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }));
  let running;
  const end = () => {
    signalAll(
      busy.map(({ pid }) => pid),
      'SIGKILL',
    );
    if (running !== undefined) signalAll(runningTree(running.pid), 'SIGTERM');
  };
  let isInterrupted = false;
  process.once('SIGINT', () => ((isInterrupted = true), end())).once('SIGTERM', () => ((isInterrupted = true), end()));

  const rounds = [];
  try {
    for (let round = 0; round < options.rounds && !isInterrupted; round++) {
      const seed = options.seed + round;
      const failures = await runOnce(options, seed, env, (child) => (running = child));
      if (isInterrupted) break;
      rounds.push({ seed, failures });
      console.log(
        `round ${round + 1}: ${failures.length === 0 ? 'passed' : failures.map(({ test }) => test).join(', ')}`,
      );
      if (rounds.filter((one) => one.failures.length > 0).length >= options.until) break;
    }
  } finally {
    end();
  }
  console.log(`\n${summaryOf(rounds)}`);
  return rounds.every(({ failures }) => failures.length === 0) ? 0 : 1;
});

async function runOnce({ jest: selection, workers, stops }, seed, env, onStarted) {
  const folder = await mkdtemp(join(tmpdir(), 'flakes-'));
  const file = join(folder, 'report.json');
  const ended = new AbortController();
  try {
    const args = jest(`--maxWorkers=${workers}`, ...selection, '--json', `--outputFile=${file}`);
    const child = spawn(process.execPath, args, {
      cwd: root,
      env: { ...env, CHAOS_SEED: String(seed) },
      stdio: 'ignore',
    });
    const closed = new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
    onStarted(child);
    const stopping = stops ? standStill(child.pid, Math.random, ended.signal) : undefined;
    const code = await closed;
    ended.abort();
    await stopping;
    const report = await readFile(file, 'utf8').catch(() => undefined);
    if (report === undefined) return [{ test: 'jest itself', message: `ended with ${code}, without a report` }];
    return failuresIn(JSON.parse(report), root);
  } finally {
    ended.abort();
    await rm(folder, { recursive: true, force: true });
  }
}
