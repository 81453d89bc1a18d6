// Runs the test files of a room in one environment, three dozen at a time: what they import, and what Jest itself needs in an
// environment, is loaded once for all of them. Each file is a block with hooks of its own (blocks.mjs), and Jest is told of each as
// if it had run alone. A room of which one file was asked for is run as Jest runs it, and so is every file with `-t`.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatResultsErrors } from 'jest-message-util';
import JestRunner from 'jest-runner';
import { inFront, rankOf, secondsOf } from '../order/longest-first.mjs';

/** Jest projects with files that take longer to load than to run, or hardly less: those on servers wait most of the time. */
const PROJECTS = new Set(['unit', 'nest', 'docs', 'servers']);
/** With more of them, one worker would still be at a group when the others have nothing left to do. */
const MOST_FILES = 36;
const MOST_SECONDS = 20;
/** What a file does with these reaches the modules and timers of the others, or hears of them. */
const ALONE = /\bnew OwnTimers\(|\bjest\.(?:resetModules\(|useFakeTimers\(|unstable_mockModule\(|spyOn\(globalThis\b)/;
const BLOCKS = fileURLToPath(new URL('blocks.mjs', import.meta.url));

export default class TogetherRunner extends JestRunner {
  #config;
  /** By the path of the file that imports them. */
  #groups = new Map();

  constructor(globalConfig, context) {
    super(globalConfig, context);
    this.#config = globalConfig;
  }

  async runTests(tests, watcher, options) {
    // It would be compared with the titles of the blocks, too.
    if (this.#config.testNamePattern) return super.runTests(tests, watcher, options);
    const folder = mkdtempSync(join(tmpdir(), 'tests-together-'));
    try {
      const units = groupsOf(tests).map((group, index) => {
        if (group.length === 1) return group[0];
        const path = join(folder, `group-${index}.test.mjs`);
        writeFileSync(path, importsOf(group));
        this.#groups.set(path, group);
        return { ...group[0], path };
      });
      return await super.runTests(units, watcher, options);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  on(event, listener) {
    const forEach = async (path, call) => {
      for (const [index, test] of this.#groups.get(path).entries()) await call(test, index);
    };
    return super.on(event, async (payload) => {
      const [first, result] = payload;
      // A test file is told as what runTests() was given, a case of it by the path of the file.
      const path = first.path ?? first;
      if (!this.#groups.has(path)) return listener(payload);
      if (event === 'test-file-success') {
        return forEach(path, (test, index) => listener([test, this.#resultOf(test, index, result)]));
      }
      // Of cases, only a progress bar wants to know before their file has ended.
      if (event.startsWith('test-file-')) return forEach(path, (test) => listener([test, result]));
    });
  }

  /** The result of one file. What is known of the group alone, such as what was printed, is told with its first file. */
  #resultOf(test, index, result) {
    const { config } = test.context;
    const testResults = result.testResults
      .filter(({ ancestorTitles }) => ancestorTitles[0] === String(index))
      .map(({ ancestorTitles: [, ...titles], ...each }) => ({
        ...each,
        ancestorTitles: titles,
        fullName: [...titles, each.title].join(' '),
      }));
    const count = (...statuses) => testResults.filter(({ status }) => statuses.includes(status)).length;
    const begins = testResults.map(({ startAt }) => startAt ?? result.perfStats.start);
    const start = Math.min(...begins, result.perfStats.end);
    const runtime = Math.round(testResults.reduce((sum, { duration }) => sum + (duration ?? 0), 0));
    const ofGroup =
      index === 0 ? result : { ...result, console: undefined, coverage: undefined, v8Coverage: undefined };
    return {
      ...ofGroup,
      testResults,
      testFilePath: test.path,
      failureMessage: formatResultsErrors(testResults, config, this.#config, test.path),
      numFailingTests: count('failed'),
      numPassingTests: count('passed'),
      numPendingTests: count('pending', 'skipped', 'disabled'),
      numTodoTests: count('todo'),
      perfStats: {
        ...result.perfStats,
        start,
        end: start + runtime,
        runtime,
        slow: runtime / 1000 > config.slowTestThreshold,
      },
    };
  }
}

/** The longest first. */
function groupsOf(tests) {
  const groups = [];
  const open = new Map();
  for (const test of tests) {
    const project = test.context.config.displayName?.name;
    // `test/core/lease/transfer` is of the room `test/core`: small folders would load the same modules once more each.
    const folders = relative(test.context.config.rootDir, dirname(test.path)).split(sep);
    const room = [project, ...folders.slice(0, 2)].join(' ');
    if (!PROJECTS.has(project) || ALONE.test(readFileSync(test.path, 'utf8'))) {
      groups.push([test]);
      continue;
    }
    let group = open.get(room);
    const seconds = secondsOf(test.path);
    if (group === undefined || group.tests.length === MOST_FILES || group.seconds + seconds > MOST_SECONDS) {
      group = { tests: [], seconds: 0 };
      open.set(room, group);
      groups.push(group.tests);
    }
    group.tests.push(test);
    group.seconds += seconds;
  }
  return inFront(groups, rankOf);
}

function importsOf(group) {
  const loads = group.map(({ path }) => `  () => import(${JSON.stringify(path)}),\n`);
  return `import { inBlocks } from ${JSON.stringify(BLOCKS)};\nawait inBlocks([\n${loads.join('')}]);\n`;
}
