import { defineScript } from './script.js';
import { HOLDER } from './shared.js';

/**
 * Starts the lease anew.
 *
 * KEYS  1 lock
 * ARGV  1 owner, 2 leaseMs
 * Reply 1: renewed. 0: not the owner; nothing was changed
 */
export const RENEW = defineScript(
  'renew',
  HOLDER,
  `
if readHolder(KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`,
);
