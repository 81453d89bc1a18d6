import { GRANTING, PASSED_ON } from './granting.js';
import { ANY_LOCK, RESIZING } from './members.js';
import { defineScript } from './script.js';
import { CLOCK } from './shared.js';

/**
 * Decides how many permits a semaphore that is in use has, and grants those who are next. Nobody who holds one loses it.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 permits
 * Reply 1: so it is, or nobody holds one; 3: the same, and whoever sent it has to go on granting. 0: the resource is in use as something else; nothing was changed
 */
export const RESIZE = defineScript(
  'resize',
  CLOCK,
  GRANTING,
  PASSED_ON,
  ANY_LOCK,
  RESIZING,
  `
local lock = readLock(KEYS[1])
if not lock then return 1 end
if lock.mode ~= 'semaphore' then return 0 end
resize(KEYS[1], lock, tonumber(ARGV[1]))
grantWaiting(KEYS[1], KEYS[2], KEYS[3], lock)
return passedOn(1)
`,
);
