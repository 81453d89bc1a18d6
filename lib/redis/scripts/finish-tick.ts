import { defineScript } from './script.js';

/**
 * Ends the claim of a tick: its run is over, so that no process reruns it; or its owner gives it back before it began.
 *
 * KEYS  1 claim
 * ARGV  1 owner, 2 how long to remember it, in milliseconds, 3 'finished' or 'returned'
 * Reply 1, also when it was noted before; or 0 when the claim is of another owner, or forgotten
 */
export const FINISH_TICK = defineScript(
  'finishTick',
  `
local claim = redis.call('GET', KEYS[1])
if claim and claim == ARGV[3] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
local claimant, state = string.match(claim or '', '^(%S*) ?(%S*)$')
if claimant ~= ARGV[1] then return 0 end
-- A run that another owner may have begun stays one.
local stands = state == 'reruns' and ARGV[3] == 'returned' and 'returned reruns' or ARGV[3]
redis.call('SET', KEYS[1], stands, 'PX', ARGV[2])
return 1
`,
);
