import { SCRIPTS } from './mutate.mjs';

/**
 * Bugs that break "each tick starts once".
 *
 * @type {readonly import('./mutate.mjs').Mutant[]}
 */
export const CRON_MUTANTS = [
  {
    name: 'claim-forgets-tick',
    what: 'the claim of a tick is not written down: only the lock keeps others away, as long as the run lasts',
    file: SCRIPTS,
    find: "redis.call('SET', claimKey, granted, 'PX', keepMs)",
    replace: '',
  },
  {
    name: 'tick-by-now',
    what: 'a tick is known by the time at which an instance asks, not by the time it was scheduled for',
    file: 'features/jobs/core/singleton-runs.js',
    find: 'const resolved = resolveSingletonRun(options, this.deps.defaults);',
    replace:
      'options = { ...options, tick: new Date().toISOString() };\n' +
      '        const resolved = resolveSingletonRun(options, this.deps.defaults);',
  },
  {
    name: 'rescue-of-the-living',
    what: 'whoever asks for a tick takes it over, without a look whether its runner is dead',
    file: SCRIPTS,
    find: "if holder or takeOver == 'nothing'",
    replace: "holder = nil\n  if takeOver == 'nothing'",
  },
  {
    name: 'claim-for-a-lease',
    what: 'a claim is remembered for one lease, which is less than the clocks of the fleet are apart',
    file: SCRIPTS,
    find: "redis.call('SET', claimKey, granted, 'PX', keepMs)",
    replace: "redis.call('SET', claimKey, granted, 'PX', leaseMs)",
  },
  {
    name: 'finish-forgotten',
    what: 'that a tick has run is not written down, so whoever watches it takes its runner for dead',
    file: SCRIPTS,
    find: "redis.call('SET', claimKey, stands, 'PX', keepMs)",
    replace: '',
  },
];
