-- Mints the next fencing token: sets token. Needs clock.lua, and fenceKey. An inline fragment, because on the fast
-- path a function would cost Redis as much as a command.
--
-- tick = max(last tick + 1, whole milliseconds since 2020-01-01 in units of 10 µs), and token = tick * 32. That
-- leaves room to number the callers of one process that hold the lock one after another. With the clock as a floor,
-- tokens grow even if Redis has lost its data. The ticks stay behind the clock up to 100,000 grants a second. Lua
-- prints numbers with 14 digits unless told otherwise.

-- Usually one command: the floor has to be set only once per millisecond.
local tick = redis.pcall('INCR', fenceKey)
if type(tick) == 'table' then
  -- A text of another program: LLEN raises Redis's own WRONGTYPE.
  if string.find(tick.err, 'integer') or string.find(tick.err, 'overflow') then redis.call('LLEN', fenceKey) end
  tick = redis.call('INCR', fenceKey)
end
-- A number of another program: its tokens would exceed 2^53, where two of them can be equal.
if tick > 281474976710655 then redis.call('LLEN', fenceKey) end
local floor = (now - 1577836800000) * 100
if tick < floor then
  -- The count restarts: Redis has lost its data. It continues above any token of this millisecond.
  tick = tick == 1 and floor + 100 + math.floor(clock[2] % 1000 / 10) or floor
  redis.call('SET', fenceKey, string.format('%.0f', tick))
end
local token = tick * 32
