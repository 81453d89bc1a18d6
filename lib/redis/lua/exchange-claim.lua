-- Changes the claim of a tick without touching the lock of its job.
--
-- KEYS   1  claim
--        2  the last claimed tick of the job
-- ARGV   1  the owner to write into the claim, or 'finished'; '' to look only
--        2  the owner whose claim it may replace, or ''
--        3  '1' to replace any claim except 'finished'
--        4  the claim to give back, or ''
--        5  how long Redis keeps the result, in milliseconds, or ''
--        6  when the tick is due, in milliseconds since 1970, or ''
--        7  how much earlier it may be claimed, in milliseconds
--        8  how much later it may be claimed, in milliseconds
--        9  how long Redis keeps the last claimed tick, in milliseconds
--        10  '1' to check the time of a tick that is not claimed
--        11  how long Redis keeps a claim that stands at most, in milliseconds, or ''
-- Reply  the claim as it is now, nil if there is none; or 'late <milliseconds>' or 'early <milliseconds>'. The SHA-1
--          of an owner id replaces the id, which is a secret: ioredis shows replies to everything that traces its
--          commands

-- @include clock
-- @include tick-due

local function sealed(claim)
  if not claim then return claim end
  local owner, rest = string.match(claim, '^(%S*)(.*)$')
  if owner == 'finished' or owner == 'returned' then return claim end
  return redis.sha1hex(owner) .. rest
end

local standing = redis.call('GET', KEYS[1])
if standing and standing == ARGV[4] then
  -- Not forgotten: the last tick of the job is known by now, and would refuse it. The key goes first: without memory to spare,
  -- Redis lets a script begin with a deletion only.
  local ttl = math.max(1, redis.call('PTTL', KEYS[1]))
  standing = string.match(standing, ' reruns$') and 'returned reruns' or 'returned'
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], standing, 'PX', ttl)
end
if not standing and ARGV[10] == '1' then
  local refusal, lateMs = judgeTick(KEYS[2], ARGV[6], ARGV[7], ARGV[8])
  if refusal then return refusal .. ' ' .. string.format('%.0f', lateMs) end
end
local isOpen = not standing or standing == ARGV[2] or string.match(standing .. ' ', '^returned ')
  or (ARGV[3] == '1' and standing ~= 'finished')
if ARGV[1] ~= '' and isOpen then
  if ARGV[6] ~= '' then noteTick(KEYS[2], ARGV[6], ARGV[7], ARGV[9]) end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[5])
  return sealed(ARGV[1])
end
if standing and ARGV[5] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
if standing and ARGV[11] ~= '' and redis.call('PTTL', KEYS[1]) > tonumber(ARGV[11]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[11])
end
return sealed(standing)
