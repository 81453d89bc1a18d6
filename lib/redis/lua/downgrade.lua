-- Turns a writer into a reader, which keeps its token, and grants the next readers.
--
-- KEYS   1  lock
--        2  queue
--        3  fence
-- ARGV   1  owner
--        2  lease in milliseconds; a longer lease is not shortened
--        3  if given: grants nothing
-- Reply  1: the owner reads now, or already did
--        3: the same, and the sender has to continue granting
--        0: not the owner; nothing was changed

-- @include clock
-- @include granting
-- @include passed-on
-- @include member
-- @include renewal

local holder, token, mode, about = readHolder(KEYS[1])
if holder == '' and mode == 'read' then return renewMember(KEYS[1], ARGV[1], ARGV[2]) and 1 or 0 end
if holder ~= ARGV[1] or mode ~= 'write' or not token then return 0 end
local leaseMs = string.format('%.0f', math.max(ARGV[2], redis.call('PTTL', KEYS[1])))
redis.call('DEL', KEYS[1])
local request = parseRequest('read', leaseMs .. string.match(about, '^%d*(.*)$'))
local lock = addMember(KEYS[1], nil, ARGV[1], request, token, leaseMs)
grantWaiting(KEYS[1], KEYS[2], not ARGV[3] and KEYS[3], lock)
return passedOn(1)
