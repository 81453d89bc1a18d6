// From what was measured to what is reported. Ratios are taken within a round, where everyone had the same machine; the
// median of them is the result.
import { spread } from '../measure/statistics.mjs';

/**
 * @param {object} scenario
 * @param {{ rounds: { order: string[], values: Record<string, any> }[], skipped?: string }} measured
 */
export function evaluate(scenario, measured) {
  const { rounds } = measured;
  const names = [...new Set(rounds.flatMap(({ values }) => Object.keys(values)))];
  const resultsOf = (name) => rounds.map(({ values }) => values[name]);
  return {
    ...measured,
    summary: Object.fromEntries(names.map((name) => [name, summaryOf(scenario, resultsOf(name))])),
    targets: scenario.targets.map((target) => judge(target, rounds)),
  };
}

function summaryOf(scenario, results) {
  const failures = results.filter((result) => result?.failed !== undefined).map(({ failed }) => failed);
  const metrics = scenario.metrics.flatMap(({ id }) => {
    const numbers = results.map((result) => result?.[id]).filter(Number.isFinite);
    return numbers.length === 0 ? [] : [[id, spread(numbers)]];
  });
  const stuck = Math.max(0, ...results.map((result) => result?.stuckWaiters ?? 0));
  return {
    ...Object.fromEntries(metrics),
    ...(failures.length > 0 && { failed: failures[0], failedRounds: failures.length }),
    ...(stuck > 0 && { stuck }),
  };
}

/** @returns {{ text: string, limit: string, unit: string, passed: boolean | null, median?: number, min?: number, max?: number }} */
function judge({ text, of, atLeast, atMost, unit = 'x' }, rounds) {
  const numbers = rounds.map(({ values }) => of(values)).filter(Number.isFinite);
  const limit = atLeast === undefined ? `<= ${atMost}` : `>= ${atLeast}`;
  if (numbers.length === 0) return { text, limit, unit, passed: null };
  const result = spread(numbers);
  const passed = atLeast === undefined ? result.median <= atMost : result.median >= atLeast;
  return { text, limit, unit, passed, ...result };
}
