-- judgeTick(lastKey, at, earlyMs, lateMs): returns 'late' or 'early' if a tick may not be claimed now, and how late
-- it is. See refusalOf in core, also for why no tick starts twice. noteTick(lastKey, at, earlyMs, keepMs): records
-- that it is claimed.

-- @include clock

local function judgeTick(lastKey, at, earlyMs, lateMs)
  at = tonumber(at)
  if at > now + earlyMs then return 'early', now - at end
  local last = tonumber(redis.call('GET', lastKey) or '') or 0
  if at < now - lateMs or (at <= last and last <= now + earlyMs) then return 'late', now - at end
end

-- The last tick that was claimed. If it could not have been claimed yet, the clock was set back.
local function noteTick(lastKey, at, earlyMs, keepMs)
  local last = tonumber(redis.call('GET', lastKey) or '') or 0
  if tonumber(at) > last or last > now + earlyMs then redis.call('SET', lastKey, at, 'PX', keepMs) end
end
