// Which bars a scenario has.
import { contestant } from '../contestants/index.mjs';
import { barChart } from './chart.mjs';
import { formatNumber, formatRatio } from './format.mjs';
import { labelOf } from './rows.mjs';

/** @returns {string | undefined} the SVG; undefined when there is nothing to draw */
export function scenarioChart(scenario, result) {
  if (!scenario.chart.ofTargets && scenario.chart.metric === undefined) return undefined;
  const bars = scenario.chart.ofTargets ? targetBars(result) : seriesBars(scenario, result);
  if (bars.length === 0) return undefined;
  const { unit, limit } = scenario.chart;
  return barChart({
    title: `${scenario.title}: ${unit}`,
    unit,
    bars,
    limit: limit && { value: limit, text: 'target' },
  });
}

function seriesBars({ chart, metrics }, { summary }) {
  const { digits } = metrics.find(({ id }) => id === chart.metric);
  return Object.entries(summary).flatMap(([name, result]) => {
    if (result[chart.metric] === undefined) return [];
    const { median, min, max } = result[chart.metric];
    const isOurs = contestant(name) === undefined && (chart.highlight ?? name) === name;
    const kind = contestant(name)?.kind ?? (isOurs ? 'ours' : 'peer');
    return [{ label: labelOf(name), value: median, text: formatNumber(median, digits), kind, range: [min, max] }];
  });
}

/** Different things beside each other: each as a share of what its target allows. */
function targetBars({ targets }) {
  return targets.flatMap(({ text, limit, median, unit }) => {
    const allowed = Number.parseFloat(limit.replace(/^[<>= ]+/, ''));
    if (median === undefined || allowed === 0) return [];
    return [{ label: text, value: (median / allowed) * 100, text: formatRatio(median, unit), kind: 'ours' }];
  });
}
