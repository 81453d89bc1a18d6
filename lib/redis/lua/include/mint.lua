-- Mints the next fencing token: sets token. Needs clock.lua, and fenceKey. An inline fragment, because on the fast
-- path a function would cost Redis as much as a command.
--
-- A tick is 20 µs since 2020-01-01, and token = tick * 64. That leaves room to number the callers of one process that
-- hold the lock one after another. The fence keeps the last half of the last tick, in units of 10 µs: a process of an
-- older version grants by halves, with 32 tokens each, so the next tick begins at the next even half. With the clock, in
-- whole milliseconds, as a floor, tokens grow even if Redis has lost its data. The ticks stay behind the clock up to
-- 50,000 grants a second, of all resources of a fence. Lua prints numbers with 14 digits unless told otherwise.

-- Usually one command: the floor has to be set only once per millisecond. '2' is a string, because Redis needs 0.25 µs to
-- format a Lua number.
local half = redis.pcall('INCRBY', fenceKey, '2')
if type(half) == 'table' then
  -- A text of another program: LLEN raises Redis's own WRONGTYPE.
  if string.find(half.err, 'integer') or string.find(half.err, 'overflow') then redis.call('LLEN', fenceKey) end
  half = redis.call('INCRBY', fenceKey, '2')
end
-- A number of another program: its tokens would exceed 2^53, where two of them can be equal.
if half > 281474976710655 then redis.call('LLEN', fenceKey) end
local floor = (now - 1577836800000) * 100
if half < floor then
  -- The count restarts: Redis has lost its data. It continues above any token of this millisecond.
  half = (half == 2 and floor + 100 + 2 * math.floor(clock[2] % 1000 / 20) or floor) + 1
  redis.call('SET', fenceKey, string.format('%.0f', half))
elseif half % 2 == 0 then
  half = half + 1
  redis.call('SET', fenceKey, string.format('%.0f', half))
end
local token = (half - 1) * 32
