import { defineScript } from './script.js';

/**
 * Notes that a tick has run, so that nobody reruns it.
 *
 * KEYS  1 claim
 * ARGV  1 owner, 2 how long to remember it, in milliseconds
 * Reply 1, or 0 when the claim is not this owner's any more
 */
export const FINISH_TICK = defineScript(
  'finishTick',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], 'finished', 'PX', ARGV[2])
return 1
`,
);
