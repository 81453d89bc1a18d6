-- The names of all jobs under a prefix: a sorted set, scored by the time at which each was last registered.
--
-- KEYS   1  index
-- ARGV   1  'add', 'drop' or 'list'
--        2  add: TTL of the index in milliseconds. drop: drops jobs that were registered before this time
--        then the names
-- Reply  list: the names; otherwise 1

-- @include clock

local indexKey = KEYS[1]
local command, number = ARGV[1], ARGV[2]

if command == 'list' then return redis.call('ZRANGE', indexKey, 0, -1) end
for index = 3, #ARGV do
  if command == 'add' then
    redis.call('ZADD', indexKey, now, ARGV[index])
  else
    local score = redis.call('ZSCORE', indexKey, ARGV[index])
    -- It may have been registered since it was read.
    if score and tonumber(score) < tonumber(number) then redis.call('ZREM', indexKey, ARGV[index]) end
  end
end
if command == 'add' then
  redis.call('PEXPIRE', indexKey, string.format('%.0f', math.max(number, redis.call('PTTL', indexKey))))
end
return 1
