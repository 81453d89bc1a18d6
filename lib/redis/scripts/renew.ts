import { defineScript } from './script.js';
import { HOLDER } from './shared.js';

/**
 * Starts the lease anew.
 *
 * KEYS  1 lock
 * ARGV  1 owner, 2 leaseMs, 3 '1' to make it shorter too, if it has longer to run
 * Reply 1: renewed. 0: not the owner; nothing was changed
 */
export const RENEW = defineScript(
  'renew',
  HOLDER,
  `
if readHolder(KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] == '1' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else lengthen(KEYS[1], ARGV[2]) end
return 1
`,
);
