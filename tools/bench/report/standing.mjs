// Where we stand among the locks, in words that do not spare us.
import { contestants, OURS } from '../contestants/index.mjs';
import { formatNumber, formatRatio } from './format.mjs';
import { labelOf } from './rows.mjs';

/** @returns {string[]} a sentence for each metric that `scenario.compare` names */
export function standing(scenario, { summary }) {
  return (scenario.compare ?? []).flatMap(({ metric, better }) => {
    const { label, digits } = scenario.metrics.find(({ id }) => id === metric);
    const ours = summary[OURS]?.[metric]?.median;
    if (ours === undefined) return [];
    const peers = contestants('peer').flatMap(({ name }) => {
      const value = summary[name]?.[metric]?.median;
      return value === undefined ? [] : [{ name, value }];
    });
    const ahead = peers
      .filter(({ value }) => (better === 'more' ? value > ours : value < ours))
      .toSorted((a, b) => (better === 'more' ? b.value - a.value : a.value - b.value));
    const number = (value) => formatNumber(value, digits);
    if (peers.length === 0) return [];
    if (ahead.length > 0) {
      const names = ahead.map(({ name, value }) => `${labelOf(name)} (${number(value)})`);
      return [`**Not first** in ${label}: ours ${number(ours)}; better: ${names.join(', ')}.`];
    }
    const next = Math[better === 'more' ? 'max' : 'min'](...peers.map(({ value }) => value));
    const ratio = formatRatio(ours / next, ' times');
    return [`First in ${label}: ours ${number(ours)}, ${ratio} the best other lock (${number(next)}).`];
  });
}
