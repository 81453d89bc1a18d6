-- Gives the lock to another owner id, with the same token. No other client can take it in between.
--
-- KEYS   1  lock
--        2  queue
-- ARGV   1  owner
--        2  the next owner
--        3  lease in milliseconds, counted from now
--        4  the fencing token of the next owner, or '' to keep the one in Redis
--        5  '1' if the first owner goes on reading
--        6  the label of the next owner; '' for none. Left out: that of the first one
-- Reply  the fencing token; also if the next owner holds the lock already, because the command was sent again
--        0: not the owner; nothing was changed

-- @include clock
-- @include holder
-- @include holder-renewal
-- @include members
-- @include member
-- @include renewal
-- @include shortened

local owner, heir, leaseMs = ARGV[1], ARGV[2], ARGV[3]
local holder, token, mode, about, depth = readHolder(KEYS[1])
if holder == heir and token then
  renewHolder(KEYS[1], { owner = heir, token = token, mode = mode, about = about, depth = depth }, leaseMs)
  return tonumber(token)
end
local function heirsAbout(known)
  local label = ARGV[6] and ARGV[6] ~= '' and ' ' .. ARGV[6] or ARGV[6] or string.match(known, '^%d*(.*)$')
  return leaseMs .. label
end
if holder == '' then
  local known = renewMember(KEYS[1], heir, leaseMs)
  if known then return tonumber(known) end
  local permits, standing, expiry, told = findMember(KEYS[1], owner)
  if not permits then return 0 end
  token = ARGV[4] ~= '' and ARGV[4] or standing
  local lock = readMembers(KEYS[1])
  if ARGV[5] ~= '1' or mode ~= 'read' then
    redis.call('HDEL', KEYS[1], owner)
    lock.used = lock.used - permits
  end
  local request = { mode = mode, count = tonumber(permits), about = heirsAbout(told) }
  addMember(KEYS[1], lock, heir, request, token, leaseMs)
  if now + leaseMs < expiry then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
  return tonumber(token)
end
-- One who shares what only one holds is mistaken: the others would be left with nothing.
if holder ~= owner or ARGV[5] == '1' then return 0 end
if not token then return 0 end
if ARGV[4] ~= '' then token = ARGV[4] end
local ttl = redis.call('PTTL', KEYS[1])
-- First: without memory to spare, Redis lets a script begin with this only.
redis.call('PEXPIRE', KEYS[1], leaseMs)
writeHolder(KEYS[1], { owner = heir, token = token, mode = mode, about = heirsAbout(about), depth = 1 })
if tonumber(leaseMs) < ttl then tellOfEnd(KEYS[1], KEYS[2], leaseMs) end
return tonumber(token)
