import { clusterScenario } from './cluster.mjs';

export const scenario = clusterScenario({
  callers: 64,
  title: '64 callers',
  who: 'One process, 64 callers.',
});
