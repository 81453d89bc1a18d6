import { defineScript } from './script.js';

/**
 * Notes that a tick has run, so that nobody reruns it.
 *
 * KEYS  1 claim
 * ARGV  1 owner, 2 how long to remember it, in milliseconds
 * Reply 1, also when it was noted before; or 0 when the claim is somebody else's, or forgotten
 */
export const FINISH_TICK = defineScript(
  'finishTick',
  `
local claim = redis.call('GET', KEYS[1])
if claim == 'finished' then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if claim ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], 'finished', 'PX', ARGV[2])
return 1
`,
);
