-- Compares a fencing token with the largest one that has written under a guard, remembers it, and runs the commands
-- of the user, in one step, so that no other client gets in between. The register holds a token as text. If the script
-- is sent again, it accepts the token and runs the commands again; the commands decide whether that does harm.
--
-- KEYS   1  register
--        2...  the keys of the commands, in the order in which they occur there
-- ARGV   1  token
--        2  TTL of the register in milliseconds, or '' for no expiry
--        3  layout of the commands: one word for each of them, with a letter for its name and for each argument:
--           k (the next of KEYS) or v (the next of ARGV)
--        4...  names and arguments
-- Reply  { 'done', reply of each command }
--        { 'stale', largest token }: nothing was executed
--        { 'failed', index, the error of Redis }: the commands before this index (counted from 0) were executed, those
--          after it were not

local newest = redis.call('GET', KEYS[1])
if newest then
  if #newest > 16 or not string.find(newest, '^[1-9]%d*$') then
    return redis.error_reply('WRONGTYPE The key holds something that is not a fencing token')
  end
  if tonumber(newest) > tonumber(ARGV[1]) then return { 'stale', newest } end
end
if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
local replies, key, value = { 'done' }, 1, 3
for layout in string.gmatch(ARGV[3], '%a+') do
  local command = {}
  for i = 1, #layout do
    if string.sub(layout, i, i) == 'k' then
      key = key + 1
      command[i] = KEYS[key]
    else
      value = value + 1
      command[i] = ARGV[value]
    end
  end
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then return { 'failed', #replies - 1, reply.err } end
  replies[#replies + 1] = reply
end
return replies
