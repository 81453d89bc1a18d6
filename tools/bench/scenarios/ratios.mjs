// Computes targets from one round. A contestant that failed in it has no value there.
import { contestants, OURS } from '../contestants/index.mjs';

/** The ratio of our value to another contestant's. */
export const toContestant = (name, metric) => (values) => values[OURS]?.[metric] / values[name]?.[metric];

export const ours = (metric) => (values) => values[OURS]?.[metric];

export const toMostOfPeers = (metric) => (values) => values[OURS]?.[metric] / Math.max(...ofPeers(values, metric));

export const toLeastOfPeers = (metric) => (values) => values[OURS]?.[metric] / Math.min(...ofPeers(values, metric));

function ofPeers(values, metric) {
  return contestants('peer')
    .map(({ name }) => values[name]?.[metric])
    .filter(Number.isFinite);
}
