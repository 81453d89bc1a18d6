-- Changes the claim of a tick without touching the lock of its job.
--
-- KEYS   1  claim
--        2  the last claimed tick of the job
-- ARGV   1  the owner to write into the claim, or 'finished'; '' to read only
--        2  the owner whose claim it may replace, or ''
--        3  '1' to replace any claim except 'finished'
--        4  the claim to give back, or ''
--        5  how long Redis keeps the result, in milliseconds, or ''
--        6  when the tick is due, in milliseconds since 1970, or ''
--        7  how much earlier it may be claimed, in milliseconds
--        8  how much later it may be claimed, in milliseconds
--        9  how long Redis keeps the last claimed tick, in milliseconds
--        10  '1' to check the time of a tick that is not claimed
--        11  maximum TTL of an existing claim in milliseconds, or ''
-- Reply  the claim as it is now, nil if there is none; or 'late <milliseconds>' or 'early <milliseconds>'. The SHA-1
--          of an owner id replaces the id, which is a secret: ioredis shows replies to everything that traces its
--          commands

-- @include clock
-- @include tick-due

local claimKey, lastKey = KEYS[1], KEYS[2]
local to, from, force, drop, keepMs, dueAt, earlyMs, lateMs, lastKeepMs, isJudged, mostMs = unpack(ARGV, 1, 11)

local function sealed(claim)
  if not claim then return claim end
  local owner, rest = string.match(claim, '^(%S-)(~%d+ .*)$')
  if not owner then owner, rest = string.match(claim, '^(%S*)(.*)$') end
  if owner == 'finished' or owner == 'returned' then return claim end
  return redis.sha1hex(owner) .. rest
end

local standing = redis.call('GET', claimKey)
if standing and standing == drop then
  -- Not forgotten: the last tick of the job is known by now, and would reject it. The key goes first: when out of memory,
  -- Redis only lets a script begin with a deletion.
  local ttl = math.max(1, redis.call('PTTL', claimKey))
  standing = 'returned' .. (string.match(standing, '~%d+ reruns$') or string.match(standing, ' reruns$') or '')
  redis.call('DEL', claimKey)
  redis.call('SET', claimKey, standing, 'PX', ttl)
end
if not standing and isJudged == '1' then
  local refusal, byMs = judgeTick(lastKey, dueAt, earlyMs, lateMs)
  if refusal then return refusal .. ' ' .. string.format('%.0f', byMs) end
end
local isOpen = not standing or standing == from or string.match(standing .. ' ', '^returned[ ~]')
  or (force == '1' and standing ~= 'finished')
if to ~= '' and isOpen then
  if dueAt ~= '' then noteTick(lastKey, dueAt, earlyMs, lastKeepMs) end
  redis.call('SET', claimKey, to, 'PX', keepMs)
  return sealed(to)
end
if standing and keepMs ~= '' then redis.call('PEXPIRE', claimKey, keepMs) end
if standing and mostMs ~= '' and redis.call('PTTL', claimKey) > tonumber(mostMs) then
  redis.call('PEXPIRE', claimKey, mostMs)
end
return sealed(standing)
