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
-- @include holder-renewal

local owner, label = ARGV[1], ARGV[2] ~= '' and ' ' .. ARGV[2] or ''
local holder, token, mode, about, depth = readHolder(KEYS[1])
if holder == '' then
  local permits, known, expiry, told = findMember(KEYS[1], owner)
  if not permits then return 0 end
  local lease = string.match(told, '^%d+')
  redis.call('HSET', KEYS[1], owner, permits .. ' ' .. known .. string.format(' %.0f ', expiry) .. lease .. label)
  return 1
end
if holder ~= owner then return 0 end
about = string.match(about, '^%d*') .. label
writeHolder(KEYS[1], { owner = owner, token = token, mode = mode, about = about, depth = depth })
return 1
