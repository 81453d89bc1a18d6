import { ACQUIRING, GRANT, QUEUE } from './queue.js';
import { defineScript } from './script.js';
import { CLOCK, FENCE, HOLDER, mint, TAKE } from './shared.js';

/**
 * Takes the lock if it is free and nobody waits for it: expiry and fencing token with it, in one step, so a crash at any
 * point leaves nothing that does not expire. Otherwise the contender joins the queue, or keeps its place there.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 owner, 2 mode (exclusive | reentrant), 3 leaseMs, 4 when the command is sent, a whole number on the sender's clock,
 *       or '' not to queue, 5 how many may wait at most
 * Reply the fencing token: granted, also when this owner has it already (the command was sent again; its TTL
 *       starts anew)
 *       [busy | queued | full, TTL of the holder in milliseconds]: not granted
 */
export const ACQUIRE = defineScript(
  'acquire',
  CLOCK,
  `
-- Nobody holds it and nobody waits: nearly always. Written out, because each function costs what a command costs.
if ARGV[2] == 'exclusive' and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
${mint('KEYS[3]')}
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. string.format('%.0f', token), 'PX', ARGV[3])
  return token
end
`,
  FENCE,
  TAKE,
  HOLDER,
  QUEUE,
  GRANT,
  ACQUIRING,
  `return acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])`,
);
