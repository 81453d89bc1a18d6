import { defineScript } from './script.js';

/**
 * Notes that a tick has run, so that nobody reruns it. The claim is remembered for as long as it was going to be.
 *
 * KEYS  1 claim
 * ARGV  1 how long to remember it, in milliseconds, where the claim itself is gone
 * Reply 1
 */
export const FINISH_TICK = defineScript(
  'finishTick',
  `
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 1 then ttl = ARGV[1] end
redis.call('SET', KEYS[1], 'finished', 'PX', ttl)
return 1
`,
);
