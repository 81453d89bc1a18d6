// Packs the package and proves it in fresh projects, each as a user would set one up: see consumers/.
//   node test/package/run.mjs [name of a consumer ...]
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../scripts/command.mjs';
import { repositoryOf } from '../../tools/package/pages.mjs';
import { stage } from '../../tools/package/stage.mjs';
import { startRedisServer } from '../../scripts/redis-server.mjs';
import { root } from '../../scripts/setup.mjs';
import { ensureBuilt } from '../../scripts/setup/dist.mjs';
import { checkConsumer } from './check-consumer.mjs';
import { npm } from './npm.mjs';
import { checkSize } from './size.mjs';

const CONSUMERS = [
  { name: 'nest11-cli', parts: [], isApplication: true },
  // Before the other application, which shares the packages that the first one installs.
  { name: 'nest12-esm-jest', parts: ['app'], hasTestingPage: true, asksNpx: true },
  { name: 'nest12-cli', parts: [], isApplication: true },
  { name: 'nest11-cjs-jest', parts: ['app'] },
  { name: 'nest12-cjs', parts: ['app', 'cjs'], hasConsoles: true },
  { name: 'nest10-cjs', parts: ['app', 'cjs'], hasConsoles: true },
  { name: 'without-schedule', parts: [] },
];
const AT_ONCE = 2;

/** The targets of links. The repository of the example does not exist, and nothing here requests it. */
const REPOSITORY =
  repositoryOf(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))) ?? 'example/nestjs-redis-lock';

const chosen = process.argv.slice(2);

await runCommand(async () => {
  await ensureBuilt(root);
  const folder = temporaryFolder();
  const redis = await startRedisServer();
  const { tarball, manifest } = await pack(folder);
  const waiting = CONSUMERS.filter(({ name }) => chosen.length === 0 || chosen.includes(name));
  if (waiting.length === 0) throw new Error(`No consumer is called ${chosen.join(' or ')}`);
  const failures = [];
  const work = async () => {
    for (let consumer = waiting.shift(); consumer !== undefined; consumer = waiting.shift()) {
      const failure = await checkConsumer(consumer, {
        folder: join(folder, consumer.name),
        tarball,
        manifest,
        redisUrl: redis.url,
        database: CONSUMERS.indexOf(consumer),
      });
      if (failure !== undefined) failures.push({ consumer: consumer.name, ...failure });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await redis.stop();
  // Last, because often only the end of a long log is kept.
  for (const { consumer, step, error } of failures) console.log(`\n${consumer}: ${step} FAILED:`, error);
  return failures.length === 0 ? 0 : 1;
});

/** Gone when this process ends, also by Ctrl-C. */
function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'nestjs-redis-lock-package-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  return folder;
}

async function pack(folder) {
  const staged = join(folder, 'staged');
  stage(staged, REPOSITORY);
  await npm(['pack', staged, '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  const tarball = join(
    folder,
    (await readdir(folder)).find((file) => file.endsWith('.tgz')),
  );
  console.log(`  size: ${await checkSize(staged, tarball)}`);
  return { tarball, manifest: JSON.parse(readFileSync(join(staged, 'package.json'), 'utf8')) };
}
