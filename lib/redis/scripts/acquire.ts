import { ACQUIRING, GRANTING } from './granting.js';
import { defineScript } from './script.js';
import { CLOCK, mint } from './shared.js';

/**
 * Takes the lock if it is free and nobody waits for it: expiry and fencing token with it, in one step, so a crash at any
 * point leaves nothing that does not expire. The same for a share of it, where it can be shared. Otherwise the contender
 * joins the queue, or keeps its place there.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 owner, 2 mode (exclusive | reentrant | read | write | semaphore:count:total:resized), 3 leaseMs, 4 when the command
 *       is sent, a whole number on the sender's clock, or '' not to queue, 5 how many may wait at most
 * Reply the fencing token: granted, also when this owner has it already (the command was sent again; its TTL
 *       starts anew)
 *       [busy | queued | full, TTL of the holder in milliseconds]: not granted. After busy a third element: not known yet, ask again
 *       [mismatch, the same TTL, mode, permits]: in use as something else
 */
export const ACQUIRE = defineScript(
  'acquire',
  CLOCK,
  `
-- Nobody holds it and nobody waits: nearly always. Written out, because each function costs what a command costs.
local isFree = redis.call('EXISTS', KEYS[1], KEYS[2]) == 0
if isFree and ARGV[2] == 'exclusive' then
${mint('KEYS[3]')}
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. string.format('%.0f', token), 'PX', ARGV[3])
  return token
end
`,
  GRANTING,
  ACQUIRING,
  `
if isFree then return (take(KEYS[1], KEYS[3], nil, ARGV[1], parseRequest(ARGV[2]), ARGV[3])) end
return acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
`,
);
