import { LATCH } from './latch.js';
import { defineScript } from './script.js';

/**
 * Reads how far a latch is. Changes nothing.
 *
 * KEYS  1 latch
 * ARGV  1 count
 * Reply [count of the latch, how many are missing, TTL in milliseconds]; where there is none: the count as stated, all of them, 0
 */
export const READ_LATCH = defineScript(
  'readLatch',
  LATCH,
  `
local count, remaining = readLatch(KEYS[1])
if not count then return { tonumber(ARGV[1]), tonumber(ARGV[1]), 0 } end
return latchReply(KEYS[1], count, remaining)
`,
);
