import { clusterScenario } from './cluster.mjs';

export const scenario = clusterScenario({
  callers: 1,
  title: 'one caller after the other',
  who: 'One process, one caller.',
});
