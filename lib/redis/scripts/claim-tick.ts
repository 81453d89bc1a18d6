import { defineScript } from './script.js';

/**
 * Claims one tick of a singleton job for the whole fleet, and says how far the tick is.
 *
 * KEYS  1 claim
 * ARGV  1 claimant, 2 how long the claim is remembered, in milliseconds, or '' to ask without claiming
 * Reply 'claimed': by this claimant, now or before (the command was sent again). 'taken': by another one, which has not
 *       finished. 'finished'. 'unknown': asked, and nobody has claimed it
 */
export const CLAIM_TICK = defineScript(
  'claimTick',
  `
local claimant = redis.call('GET', KEYS[1])
if not claimant then
  if ARGV[2] == '' then return 'unknown' end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 'claimed'
end
if claimant == ARGV[1] then return 'claimed' end
if claimant == 'finished' then return 'finished' end
return 'taken'
`,
);
