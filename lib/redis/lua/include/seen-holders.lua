-- Sets seen: the holders of a lock that readLock or grantWaiting returned, as text. Its first line is "mode count
-- now", and each line after it a holder: "client permits token end", and " label" if it has one. count is how many
-- holders there are at least, and end the time at which the lease ends. '' where no holder is known. Needs clock.lua; lock; and ttl, what is left of
-- the lease of a single holder. An inline fragment: a function would cost those that are granted as well.
--
-- The client is what an owner id has before its secret. Where many share the lock, Redis chooses some of them at
-- random: a look at all of them would have no bound. Without the right to HRANDFIELD the text is empty, and nothing
-- else is different. What another program has written is cut here, and checked by the reader: that costs Redis
-- nothing.

local seen = ''
if lock and lock.owner then
  local client = string.match(lock.owner, '^(%S+)/')
  if client then
    -- A token that was minted here is a number, and Lua prints 14 digits of those.
    seen = string.format(
      '%.9s 1 %.0f\n%s 1 %.20s %.0f', lock.mode, now, string.sub(client, 1, 200),
      type(lock.token) == 'string' and lock.token or string.format('%.0f', lock.token or 0), now + ttl
    )
    if lock.label then seen = seen .. ' ' .. string.match(string.sub(lock.label, 1, 300), '^[^\n]*') end
  end
elseif lock and not isCut then
  local named = {}
  -- 8 of so many fields are members, because 6 at most are not.
  local fields = redis.pcall('HRANDFIELD', lockKey, 14, 'WITHVALUES')
  for index = 1, #fields, 2 do
    local client = string.match(fields[index], '^(%S+)/')
    if client then named[#named + 1] = string.sub(client, 1, 200) .. ' ' .. string.match(string.sub(fields[index + 1], 1, 340), '^[^\n]*') end
  end
  local count = #named
  -- There may be more. Of readers, used says how many.
  if #fields == 28 then
    count = lock.total and redis.call('HLEN', lockKey) - (lock.sweep and 6 or 5) or lock.used or count
  end
  if named[1] then
    seen = string.sub(lock.mode, 1, 9) .. ' ' .. count .. ' ' .. now .. '\n' .. table.concat(named, '\n')
  end
end
