-- Restarts leases. Shortens none, because a late command must not cut a lease that was extended since.
--
-- KEYS   for each lease: lock
-- ARGV   for each lease: owner, lease in milliseconds
-- Reply  for each lease, in their order, one of these:
--          1: renewed
--          0: not the owner; nothing was changed
--          the error of Redis as a text: it concerns this lease alone. The others are still renewed

-- An exclusive lock of this owner, renewed as before: the usual case, which needs no clock.
local replies, texts, areUsual = {}, {}, true
for lease = 1, #ARGV / 2 do
  -- By the arguments: on a cluster there is one more key.
  local lockKey, owner, leaseMs = KEYS[lease], ARGV[2 * lease - 1], ARGV[2 * lease]
  local text, known = redis.pcall('GET', lockKey), owner .. ' '
  local isUsual = type(text) == 'string' and string.sub(text, 1, #known) == known
    and string.match(text, '^%d+ (%d+)', #known + 1) == leaseMs
  if isUsual and redis.call('PTTL', lockKey) <= tonumber(leaseMs) then
    replies[lease] = redis.call('PEXPIRE', lockKey, leaseMs)
  else
    replies[lease], texts[lease] = 0, text
    areUsual = areUsual and not text
  end
end
if areUsual then return replies end

-- @include clock
-- @include holder
-- @include holder-renewal
-- @include renewal

local function renew(lockKey, owner, leaseMs, text)
  local present, token, mode, about, depth = readHolder(lockKey, text)
  if present == '' then return renewMember(lockKey, owner, leaseMs) and 1 or 0 end
  if present ~= owner then return 0 end
  renewHolder(lockKey, { owner = owner, token = token, mode = mode, about = about, depth = depth }, leaseMs)
  return 1
end

for lease = 1, #ARGV / 2 do
  if texts[lease] then
    local lockKey, owner, leaseMs = KEYS[lease], ARGV[2 * lease - 1], tonumber(ARGV[2 * lease])
    local isDone, reply = pcall(renew, lockKey, owner, leaseMs, texts[lease])
    if not isDone then
      -- @inline own-error
    end
    replies[lease] = reply
  end
end
return replies
