-- Changes a request of an operator, in one step. A new one is announced to all instances; the message has only its id.
--
-- KEYS   1  the request
-- ARGV   1  the expected current value, '' for none
--        2  the new value; '' to read only
--        3  its TTL in milliseconds
--        4  the channel to announce it on, or '' for none
--        5  the message
-- Reply  the resulting value, '' for none. NOPERM if an ACL forbids the channel; then nothing is stored

local key = KEYS[1]
local from, to, keepMs, channel, message = unpack(ARGV, 1, 5)
local standing = redis.call('GET', key) or ''
-- A command that was sent again.
if to == '' or (standing ~= from and standing ~= to) then return standing end
if standing == from then redis.call('SET', key, to, 'PX', keepMs) end
if channel == '' then return to end
local told = redis.pcall('PUBLISH', channel, message)
if type(told) == 'table' then
  redis.call('DEL', key)
  return told
end
return to
