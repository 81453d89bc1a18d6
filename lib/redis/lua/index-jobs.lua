-- The names of all jobs under a prefix: a sorted set, scored by the time at which each was last registered.
--
-- KEYS   1  index
-- ARGV   1  'add', 'drop' or 'list'
--        2  add: how long Redis keeps the index, in milliseconds. drop: until when the jobs were registered that are dropped
--        then the names
-- Reply  list: the names; otherwise 1

-- @include clock

if ARGV[1] == 'list' then return redis.call('ZRANGE', KEYS[1], 0, -1) end
for index = 3, #ARGV do
  if ARGV[1] == 'add' then
    redis.call('ZADD', KEYS[1], now, ARGV[index])
  else
    local score = redis.call('ZSCORE', KEYS[1], ARGV[index])
    -- It may have been registered since it was looked at.
    if score and tonumber(score) < tonumber(ARGV[2]) then redis.call('ZREM', KEYS[1], ARGV[index]) end
  end
end
if ARGV[1] == 'add' then
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(ARGV[2], redis.call('PTTL', KEYS[1]))))
end
return 1
