import { clusterScenario } from './cluster.mjs';

export const scenario = clusterScenario({
  callers: 8,
  title: 'eight callers',
  who: 'One process, eight callers.',
});
