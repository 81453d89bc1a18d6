import { GRANTING, PASSED_ON } from './granting.js';
import { defineScript } from './script.js';
import { CLOCK, refuse } from './shared.js';

/**
 * Ends the lease that has a fencing token, whoever holds it, and grants whoever is next. Leases that follow one another
 * inside one process, which Redis does not know of, count up from the token that it knows: those are meant by it too. A reader
 * that was handed on has its own of these tokens, and goes by that. For operators: it takes longer with every reader, or holder of
 * permits, that there is.
 *
 * KEYS  1 lock, 2 queue, 3 fence
 * ARGV  1 fencing token
 * Reply 1: it was ended; 3: the same, and whoever sent it has to go on granting. 0: nobody holds the lock with this token; nothing was changed
 */
export const FORCE_RELEASE = defineScript(
  'forceRelease',
  CLOCK,
  GRANTING,
  PASSED_ON,
  `
local meant = tonumber(ARGV[1])
local function isMeant(token)
  return math.floor(token / 32) == math.floor(meant / 32)
end

local holder, token = readHolder(KEYS[1])
if holder == false then
  ${refuse('KEYS[1]')}
end
local wasHeld, lock = 0, nil
if holder == '' then
  -- The one with this very token, or else the one whose leases count up to it.
  local entries, owner, nearest = redis.call('HGETALL', KEYS[1]), nil, math.huge
  for index = 1, #entries, 2 do
    local memberToken = tonumber(string.match(entries[index + 1], '^%d+ (%d+) %d+$') or -1)
    if memberToken == meant then memberToken = 0 elseif not isMeant(memberToken) then memberToken = math.huge end
    if memberToken < nearest then owner, nearest = entries[index], memberToken end
  end
  if owner then wasHeld, lock = removeMember(KEYS[1], owner) end
elseif holder and isMeant(tonumber(token)) then
  wasHeld = redis.call('DEL', KEYS[1])
end
if wasHeld == 0 then return 0 end
grantWaiting(KEYS[1], KEYS[2], KEYS[3], lock)
return passedOn(1)
`,
);
