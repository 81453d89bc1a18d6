-- Notifies the watchers of a lock that it is free: "free seal number resource" in the inboxes of their clients. The seal
-- covers the number and the watcher, whose id is a secret: see grant-seal.ts. An inline fragment of grantWaiting.
--
-- A watcher is notified once, and then removed. One script notifies at most a hundred, in the order in which their
-- watches end. The others are notified by the script that continues, if the lock is still free then, or by a later one. A
-- lock that the script passes on was not free. A place after a watcher, which another program must have written, stays:
-- the script that continues grants it. If an ACL forbids the channel, the watchers find out by asking.

if isWatched and not isPassedOn and (not lock or lock.used == 0) then
  local watchers, told = redis.call('ZRANGE', queueKey, 0, 99, 'WITHSCORES'), {}
  for index = 1, #watchers, 2 do
    local score, watcher = tonumber(watchers[index + 1]), string.sub(watchers[index], 2)
    local client = string.match(watcher, '^(.*)/')
    if string.sub(watchers[index], 1, 1) == '!' then told[#told + 1] = watchers[index] else isCut = true end
    if client and score > now * 1000 then
      local mark = string.format('%.0f', score % 1000)
      redis.pcall('PUBLISH', prefix .. 'inbox:' .. client,
        'free ' .. redis.sha1hex(mark .. ' ' .. watcher) .. ' ' .. mark .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
    end
  end
  redis.call('ZREM', queueKey, unpack(told))
  if #told == 100 then isCut = true end
  isWatched = false
end
