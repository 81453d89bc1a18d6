// npm run coverage: which lines of lib/ the tests execute that run in one process: a line for each room. Writes coverage/rooms.json.
//   npm run coverage -- --against <file>   beside the numbers of a run before. Fails where a room is lower
//   npm run coverage -- <jest args>        of these tests
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inForeground, runCommand } from '../../scripts/command.mjs';
import { jest, LONG } from '../../scripts/jest.mjs';
import { root, setUp } from '../../scripts/setup.mjs';
import { environmentOf } from '../../scripts/setup/find-redis.mjs';
import { coverageByRoom, coverageTable, lowerRooms } from './rooms.mjs';

const FOLDER = join(root, 'coverage');
const TESTS = ['--selectProjects', 'unit', 'stores', 'nest', '--testPathIgnorePatterns', LONG];
const COVERAGE = [
  '--coverage',
  '--coverageProvider=babel',
  '--coverageReporters=json-summary',
  `--coverageDirectory=${FOLDER}`,
  '--collectCoverageFrom=lib/**/*.ts',
  '--maxWorkers=2',
];

await runCommand(async () => {
  const [option, file, ...rest] = process.argv.slice(2);
  const isCompared = option === '--against';
  const chosen = isCompared ? rest : process.argv.slice(2);
  const before = isCompared ? JSON.parse(await readFile(file, 'utf8')) : [];

  const redis = await setUp({ ownServer: true });
  const env = { ...process.env, ...environmentOf(redis) };
  const args = jest(...(chosen.length > 0 ? chosen : TESTS), ...COVERAGE);
  const code = await inForeground(process.execPath, args, { cwd: root, env });

  const summary = JSON.parse(await readFile(join(FOLDER, 'coverage-summary.json'), 'utf8'));
  const rooms = coverageByRoom(summary, root);
  await writeFile(join(FOLDER, 'rooms.json'), JSON.stringify(rooms, null, 2));
  console.log(coverageTable(rooms, before));
  const lower = lowerRooms(rooms, before);
  if (lower.length > 0) console.log(`Lower than before: ${lower.join(', ')}`);
  return Math.max(code, lower.length > 0 ? 1 : 0);
});
