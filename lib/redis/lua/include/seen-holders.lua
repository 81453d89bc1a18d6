-- Sets seen: the holders of a lock that readLock or grantWaiting returned, as text: "mode count", and then "client
-- token heldMs ttlMs permits" of each, at most 8. '' where no holder is known. Needs clock.lua; lock; and ttl, what is
-- left of the lease of a single holder. An inline fragment: a function would cost those that are granted as well.
--
-- The client is what an owner id has before its secret. Where many share the lock, Redis chooses some of them at
-- random: a look at all of them would have no bound. Without the right to HRANDFIELD, and where another program has
-- written something else, the text is empty or short, and nothing else is different.

local seen, count, members = '', 1, {}
if lock and lock.owner then
  members = { lock.owner, lock.token, ttl, 1 }
elseif lock and not isCut then
  -- 8 of so many fields are members, because 6 at most are not.
  local fields = redis.pcall('HRANDFIELD', lockKey, 14, 'WITHVALUES')
  for index = 1, #fields, 2 do
    local permits, token, expiry = string.match(fields[index + 1], '^(%d+) (%d+) (%d+)$')
    if permits and tonumber(expiry) > now then
      for _, value in ipairs({ fields[index], token, expiry - now, permits }) do members[#members + 1] = value end
    end
  end
  count = #members / 4
  -- There may be more. Of readers, used says how many.
  if #fields == 28 then count = lock.total and redis.call('HLEN', lockKey) - (lock.sweep and 6 or 5) or lock.used or count end
end
for index = 1, math.min(#members, 32), 4 do
  local client, token = string.match(members[index], '^(%S+)/'), tonumber(members[index + 1]) or 0
  -- A token is the time of its grant, see mint.lua.
  seen = seen .. string.format(' %s %.0f %.0f %.0f %.0f', string.sub(client or '?', 1, 200), token,
    math.max(0, now - 1577836800000 - math.floor(token / 3200)), members[index + 2], members[index + 3])
end
if seen ~= '' then seen = string.sub(lock.mode, 1, 9) .. ' ' .. count .. seen end
