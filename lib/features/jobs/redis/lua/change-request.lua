-- Changes a request of an operator, in one step. A new one is announced to all instances; the message only has its place.
--
-- KEYS   1  the request
-- ARGV   1  what it must be now, '' for none
--        2  what it becomes; '' to look only
--        3  how long it is kept, in milliseconds
--        4  the channel to announce it on, or '' for none
--        5  the message
-- Reply  what it is then, '' for none. NOPERM if an ACL forbids the channel; then there is none

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
