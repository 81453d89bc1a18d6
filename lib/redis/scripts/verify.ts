import { defineScript } from './script.js';
import { HOLDER } from './shared.js';

/**
 * Whether this owner holds the lock. Changes nothing.
 *
 * KEYS  1 lock
 * ARGV  1 owner
 * Reply 1 or 0
 */
export const VERIFY = defineScript('verify', HOLDER, `return readHolder(KEYS[1]) == ARGV[1] and 1 or 0`);
