import { GRANTING, PASSED_ON } from './granting.js';
import { MEMBER, RENEWAL } from './members.js';
import { defineScript } from './script.js';
import { CLOCK } from './shared.js';

/**
 * Makes a writer a reader, in place and with its token, and lets in the readers who are next.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 owner, 2 leaseMs: the lease runs at least this much longer
 * Reply 1: it reads now, also when it did before; 3: the same, and whoever sent it has to go on granting. 0: not the owner; nothing was changed
 */
export const DOWNGRADE = defineScript(
  'downgrade',
  CLOCK,
  GRANTING,
  PASSED_ON,
  MEMBER,
  RENEWAL,
  `
local holder, token, mode = readHolder(KEYS[1])
if holder == '' and mode == 'read' then return renewMember(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0 end
if holder ~= ARGV[1] or mode ~= 'write' then return 0 end
local leaseMs = math.max(tonumber(ARGV[2]), redis.call('PTTL', KEYS[1]))
redis.call('DEL', KEYS[1])
local lock = addMember(KEYS[1], nil, ARGV[1], parseRequest('read'), token, string.format('%.0f', leaseMs))
grantWaiting(KEYS[1], KEYS[2], KEYS[3], lock)
return passedOn(1)
`,
);
