-- Asks all instances, by a message "roll nonce scope" on a channel to which they subscribe: see RollCalls.
--
-- KEYS   1  the roll call
-- ARGV   1  nonce
--        2  scope
--        3  the channel
--        4  minimum time since the previous one, in milliseconds
--        5  how long it is kept, in milliseconds
--        6  '1' if this server knows all subscribers
-- Reply  { nonce, scope, when it began, how long ago, the number of subscribers or -1 }, in milliseconds.
--        NOPERM if an ACL forbids the channel

-- @include clock

local key, nonce, scope, channel = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local standing = redis.call('HMGET', key, 'nonce', 'scope', 'at', 'asked')
local ageMs = now - (tonumber(standing[3] or '') or 0)
-- A clock that was set back must not keep one open.
if standing[1] and (standing[1] == nonce or (ageMs >= 0 and ageMs < tonumber(ARGV[4]))) then
  return { standing[1], standing[2], tonumber(standing[3]), math.max(ageMs, 0), tonumber(standing[4]) }
end

local asked = -1
if ARGV[6] == '1' then
  local counted = redis.pcall('PUBSUB', 'NUMSUB', channel)
  asked = tonumber(counted[2] or -1)
end
redis.call('HSET', key, 'nonce', nonce, 'scope', scope, 'at', string.format('%.0f', now), 'asked', asked)
redis.call('PEXPIRE', key, ARGV[5])
local told = redis.pcall('PUBLISH', channel, 'roll ' .. nonce .. ' ' .. scope)
if type(told) == 'table' then
  redis.call('DEL', key)
  return told
end
return { nonce, scope, now, 0, asked }
