-- Sets seen: the holders of a lock that readLock or grantWaiting returned, as text. Its first line is "mode count
-- now", and each line after it a holder: "client share token end about". count is the minimum number of holders; share,
-- the permits of a member, or how often a single holder has entered; end, the time at which the lease ends; about, as in
-- holder.lua. '' if no holder is known. Needs clock.lua; lock; and ttl, the time left of the lease of a single holder. An
-- inline fragment: a function would also cost callers that are granted.
--
-- The client is the part of an owner id before its secret. If many share the lock, Redis picks some of them at random,
-- because reading all of them would be unbounded. Without permission for HRANDFIELD, the text is empty, and nothing else
-- differs. Data of other programs is truncated here, and validated by the client, which costs Redis nothing.

local seen = ''
if lock and lock.owner then
  local client = string.match(lock.owner, '^(%S+)/')
  if client then
    -- A token that was minted here is a number, and Lua prints 14 digits of those.
    local standing = type(lock.token) == 'string' and string.sub(lock.token, 1, 20) or string.format('%.0f', lock.token or 0)
    seen = string.format('%.9s 1 %.0f\n', lock.mode, now) .. string.sub(client, 1, 200) .. ' '
      .. (lock.depth and string.sub(lock.depth, 1, 7) or 1) .. ' ' .. standing .. string.format(' %.0f ', now + ttl)
      .. (#lock.about < 17 and lock.about or string.match(string.sub(lock.about, 1, 320), '^[^\n]*'))
  end
elseif lock and not isCut then
  local named = {}
  -- 8 of this many fields are members, because at most 6 are not.
  local fields = redis.pcall('HRANDFIELD', lockKey, 14, 'WITHVALUES')
  for index = 1, #fields, 2 do
    local client = string.match(fields[index], '^(%S+)/')
    if client then named[#named + 1] = string.sub(client, 1, 200) .. ' ' .. string.match(string.sub(fields[index + 1], 1, 360), '^[^\n]*') end
  end
  local count = #named
  -- There may be more. For readers, used is their number.
  if #fields == 28 then
    count = lock.total and redis.call('HLEN', lockKey) - (lock.sweep and 6 or 5) or lock.used or count
  end
  if named[1] then
    seen = string.sub(lock.mode, 1, 9) .. ' ' .. count .. ' ' .. now .. '\n' .. table.concat(named, '\n')
  end
end
