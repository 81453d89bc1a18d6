import { ACQUIRING, GRANTING, RELEASING } from './granting.js';
import { defineScript } from './script.js';
import { CLOCK } from './shared.js';

/**
 * An instance gives its lock back and waits for it again, in one round trip: the whole of release, then the whole of
 * acquire for the next contender, who stands behind everybody that waits.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 owner, 2 next contender, 3 its mode, 4 its leaseMs, 5 when the command is sent, 6 how many may wait at most
 * Reply [what release replies, what acquire replies]
 */
export const ROTATE = defineScript(
  'rotate',
  CLOCK,
  GRANTING,
  RELEASING,
  ACQUIRING,
  `
local released, isKnown, lock = releaseLock(KEYS[1], KEYS[2], KEYS[3], ARGV[1])
return { released, acquireLock(KEYS[1], KEYS[2], KEYS[3], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], isKnown, lock) }
`,
);
