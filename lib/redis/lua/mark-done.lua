-- Records that the work of an owner is done, for `exec --once`, or reads that record.
--
-- KEYS   1  lock
--        2  marker
-- ARGV   1  owner, or '' to read only
--        2  how long Redis keeps the marker, in milliseconds
-- Reply  how many milliseconds ago it was done; nil: it was not done, or this owner does not hold the lock, and
--          nothing was changed

-- @include clock
-- @include holder

if ARGV[1] == '' then
  local doneAt = redis.call('GET', KEYS[2])
  return doneAt and now - (tonumber(doneAt) or now)
end
if readHolder(KEYS[1]) ~= ARGV[1] then return nil end
redis.call('SET', KEYS[2], now, 'PX', ARGV[2])
return 0
