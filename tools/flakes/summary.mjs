// Which tests failed, and when.
import { relative } from 'node:path';

/**
 * @param {object} report what Jest writes with --json
 * @returns {{ test: string, message: string }[]} a suite that could not run counts as one test
 */
export function failuresIn({ testResults }, root) {
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter((result) => result.status === 'failed');
    if (failed.length === 0 && status === 'failed') return [{ test: file, message }];
    return failed.map(({ fullName, failureMessages }) => ({
      test: `${file} > ${fullName}`,
      message: failureMessages.join('\n'),
    }));
  });
}

/** @param {{ seed: number, failures: { test: string, message: string }[] }[]} rounds */
export function summaryOf(rounds) {
  const byTest = new Map();
  for (const { seed, failures } of rounds) {
    for (const { test, message } of failures) byTest.set(test, [...(byTest.get(test) ?? []), { seed, message }]);
  }
  const bad = rounds.filter(({ failures }) => failures.length > 0).length;
  const rows = [...byTest].sort(([, one], [, other]) => other.length - one.length);
  return [
    ...rows.flatMap(([test, times]) => [
      `${times.length} of ${rounds.length}  ${test}`,
      `    CHAOS_SEED=${times.map(({ seed }) => seed).join(', ')}`,
      ...firstLines(times[0].message).map((line) => `    ${line}`),
    ]),
    `${rounds.length - bad} passed, ${bad} failed`,
  ].join('\n');
}

function firstLines(message) {
  return message
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(0, 12);
}
