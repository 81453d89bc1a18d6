-- noteInstance(instancesKey, owner, keepMs): records that the instance has the job, accurate to a minute. Needs
-- clock.lua. Only displayed: nothing depends on it.

local function noteInstance(instancesKey, owner, keepMs)
  local instance = string.match(owner, '^[^/]*')
  local seen = redis.pcall('ZSCORE', instancesKey, instance)
  if type(seen) == 'table' or (seen and tonumber(seen) > now - 60000) then return end
  redis.pcall('ZADD', instancesKey, now, instance)
  -- Each start of a process has a new name.
  local oldest = redis.pcall('ZRANGE', instancesKey, 0, 0, 'WITHSCORES')
  if oldest[1] and oldest[1] ~= instance and (tonumber(oldest[2]) < now - keepMs or redis.call('ZCARD', instancesKey) > 1000) then
    redis.call('ZREM', instancesKey, oldest[1])
  end
  redis.pcall('PEXPIRE', instancesKey, string.format('%.0f', math.max(keepMs, redis.call('PTTL', instancesKey))))
end
