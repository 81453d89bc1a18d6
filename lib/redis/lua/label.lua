-- Sets the label of what an owner holds, or removes it. Its lease and its token stay as they are.
--
-- KEYS   1  lock
-- ARGV   1  owner
--        2  label: JSON that begins with a brace; '' for none
-- Reply  1: set
--        0: not the owner; nothing was changed

-- @include clock
-- @include holder
-- @include member

local owner, label = ARGV[1], ARGV[2] ~= '' and ' ' .. ARGV[2] or ''
local holder, token, mode = readHolder(KEYS[1])
if holder == '' then
  local permits, known, expiry = findMember(KEYS[1], owner)
  if not permits then return 0 end
  redis.call('HSET', KEYS[1], owner, permits .. ' ' .. known .. ' ' .. string.format('%.0f', expiry) .. label)
  return 1
end
if holder ~= owner then return 0 end
if mode == 'exclusive' then
  redis.call('SET', KEYS[1], owner .. ' ' .. token .. label, 'KEEPTTL')
elseif label == '' then
  redis.call('HDEL', KEYS[1], 'label')
else
  redis.call('HSET', KEYS[1], 'label', ARGV[2])
end
return 1
