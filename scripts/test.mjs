// npm test                       the tests to run after a change: a minute and a half
// npm test -- test/kernel/lease    the tests in these files and folders, however slow they are
// npm test -- -t watchdog        all that starts with a dash goes to Jest
import { runCommand } from './command.mjs';
import { jest, LONG, SLOW, testFiles } from './jest.mjs';
import { setUp } from './setup.mjs';
import { environmentOf } from './setup/find-redis.mjs';

/** Projects of Jest that only `npm run test:all` runs. */
const OF_ALL = ['servers', 'sample-app', 'stacks', 'site', 'testing-page', 'browser', 'chaos'];
/** The kinds of tests that each form leaves out, unless a path names them. */
const WITHOUT = {
  test: ['--ignoreProjects', ...OF_ALL, '--testPathIgnorePatterns', LONG, SLOW],
  all: ['--testPathIgnorePatterns', LONG],
  long: [],
};
/** Rooms whose tests start no process, so that nothing of theirs comes from dist/: to build it takes longer than they do. */
const IN_PROCESS =
  /^test\/(contract|kernel|stores|testing|extras\/(races|telemetry|views)|features\/\w+\/(core|redis|sql|testing)|(features\/\w+\/)?nest(?!.*\.slow\.))\//;

await runCommand(async () => {
  const [form, ...args] = process.argv.slice(2);
  const firstOption = args.findIndex((arg) => arg.startsWith('-'));
  const paths = firstOption < 0 ? args : args.slice(0, firstOption);
  const options = args.slice(paths.length);
  const files = paths.flatMap(testFiles);
  const chosen = files.length > 0 ? ['--runTestsByPath', ...files] : WITHOUT[form];

  // No test of `npm test` starts a process of the package.
  const isInProcess = files.length > 0 ? files.every((file) => IN_PROCESS.test(file)) : form === 'test';
  const redis = await setUp({ ownServer: true, needsBuild: !isInProcess });
  return jest([...chosen, ...options], { ...process.env, TEST_SPEED: form, ...environmentOf(redis) });
});
