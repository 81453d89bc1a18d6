import { MEMBER, MEMBERS, RENEWAL } from './members.js';
import { defineScript } from './script.js';
import { CLOCK, HOLDER, LEASE } from './shared.js';

/**
 * Starts the lease anew.
 *
 * KEYS  1 lock
 * ARGV  1 owner, 2 leaseMs, 3 '1' to make it shorter too, if it has longer to run
 * Reply 1: renewed. 0: not the owner; nothing was changed
 */
export const RENEW = defineScript(
  'renew',
  `
-- An exclusive lock of this owner: nearly always, and no members whose time would have to be known.
local text = redis.pcall('GET', KEYS[1])
if type(text) == 'string' and string.sub(text, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then
  local ttl = ARGV[3] == '1' and 0 or redis.call('PTTL', KEYS[1])
  redis.call('PEXPIRE', KEYS[1], ttl < tonumber(ARGV[2]) and ARGV[2] or string.format('%.0f', ttl))
  return 1
end
if not text then return 0 end
`,
  CLOCK,
  HOLDER,
  LEASE,
  MEMBERS,
  MEMBER,
  RENEWAL,
  `
local holder = readHolder(KEYS[1], text)
if holder == '' then return renewMember(KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1') and 1 or 0 end
if holder ~= ARGV[1] then return 0 end
if ARGV[3] == '1' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else lengthen(KEYS[1], ARGV[2]) end
return 1
`,
);
