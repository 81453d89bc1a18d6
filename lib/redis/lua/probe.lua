-- Finds out what the Redis user may not do. Leaves nothing behind: its key holds a text for a moment, so that commands
-- for other types fail there. Redis checks permissions before it reads the key, and before it redirects to another node of
-- a cluster. So if a node rejects the script for its keys, it is asked without keys.
--
-- KEYS   1  an unused key that looks like a lock's
--        2  the fence
-- ARGV   1  KEYS[1], for a script without keys
--        2  KEYS[2], for a script without keys
--        3  a channel on which no process waits for this message
--        4  the commands to try, in lower case, with a space between them
--        5  another such channel, which looks like the channel of roll calls
-- Reply  a list of pairs: what was tried, and the error with which Redis rejected it
local key, fence, channel = KEYS[1] or ARGV[1], KEYS[2] or ARGV[2], ARGV[3]
local refusals = {}

local function isAllowed(what, ...)
  local said = redis.pcall(...)
  said = type(said) == 'table' and said.err or ''
  -- Redis 7.2 and later; the versions before it.
  if not string.find(said, 'NOPERM', 1, true) and not string.find(said, 'The user executing', 1, true) then return true end
  table.insert(refusals, what)
  table.insert(refusals, said)
  return false, string.find(said, ' key', 1, true) ~= nil
end

-- Redis checks the command first. If it rejects the key, it rejects it for every command, so none can write.
local isText, isKeyRefused = isAllowed('set', 'SET', key, 'probe', 'PX', 1000)
local isSafe = isText or isKeyRefused
isAllowed('fence', 'EXISTS', fence)

local arguments = {
  del = {key}, exists = {key}, get = {key}, pexpire = {key, 1000}, pttl = {key},
  hrandfield = {key}, hdel = {key, ''}, hget = {key, ''}, hgetall = {key}, hlen = {key}, hmget = {key, ''}, hscan = {key, 0},
  zadd = {key, 'no number', ''}, zcard = {key}, zcount = {key, 0, 0}, zrange = {key, 0, 0}, zrem = {key, ''},
  zscore = {key, ''}, llen = {key}, publish = {channel, ''}, ['pubsub|numsub'] = {channel},
  ['pubsub|channels'] = {channel}, time = {},
  lrange = {key, 0, 0}, ltrim = {key, 0, 0}, lrem = {key, 0, ''}, lset = {key, 0, ''},
  info = {'server'},
  -- These would write, if there were no text and the key were allowed.
  hset = isSafe and {key, '', ''}, incrby = isSafe and {key, 0}, lpush = isSafe and {key, ''},
}
local function try(command)
  local form = arguments[command]
  if form == nil then
    table.insert(refusals, command)
    table.insert(refusals, 'ERR probe.lua does not know how to try it')
  elseif form then
    local name, subcommand = string.match(command, '^(%w+)|?(%w*)$')
    if subcommand ~= '' then table.insert(form, 1, subcommand) end
    isAllowed(command, name, unpack(form))
  end
end

for command in string.gmatch(ARGV[4], '%S+') do
  if command ~= 'set' and command ~= 'del' then try(command) end
end
isAllowed('roll', 'PUBLISH', ARGV[5], '')
-- Last, because it removes the text.
try('del')
return refusals
