// npm test                       the tests to run after a change: a minute and a half
// npm test -- test/core/lease    the tests in these files and folders, however slow they are
// npm test -- -t watchdog        all that starts with a dash goes to Jest
import { runCommand } from './command.mjs';
import { jest, LONG, SLOW, testFiles } from './jest.mjs';
import { setUp } from './setup.mjs';
import { environmentOf } from './setup/find-redis.mjs';

/** Projects of Jest that only `npm run test:all` runs. */
const OF_ALL = ['servers', 'sample-app', 'stacks', 'site', 'browser', 'chaos'];
/** What each form leaves out, unless a path names it. */
const WITHOUT = {
  test: ['--ignoreProjects', ...OF_ALL, '--testPathIgnorePatterns', LONG, SLOW],
  all: ['--testPathIgnorePatterns', LONG],
  long: [],
};

await runCommand(async () => {
  const [form, ...args] = process.argv.slice(2);
  const firstOption = args.findIndex((arg) => arg.startsWith('-'));
  const paths = firstOption < 0 ? args : args.slice(0, firstOption);
  const options = args.slice(paths.length);
  const files = paths.flatMap(testFiles);
  const chosen = files.length > 0 ? ['--runTestsByPath', ...files] : WITHOUT[form];

  const redis = await setUp({ ownServer: true });
  return jest([...chosen, ...options], { ...process.env, TEST_SPEED: form, ...environmentOf(redis) });
});
