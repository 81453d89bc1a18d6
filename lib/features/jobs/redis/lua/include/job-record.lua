-- readRecord(recordKey) and keepRecord(keys, next, keepMs): the record of a job. A hash with these fields, all of them
-- optional:
--   schedule  the cron text and its time zone
--   next      when the next tick is due, in milliseconds since 1970
--   stated    when an instance with this schedule last reported when the next tick is due. Without a schedule, when a tick
--             was last claimed, or until then when the job was registered
--   by        the instance that last registered or claimed by this schedule
--   other     "since at told instance schedule": another schedule that instances still follow. told is 1 once one of them has
--             received it in a reply
--   date      the single date of a job that has one, in milliseconds since 1970, as it was registered last
--   missed    how many ticks were missed
--   ok        when the last run that succeeded ended
--   owed      a pending catch-up: when the last of its ticks was due
--   span      "count first last until" of the last catch-up
--   since     when it was registered, until a tick is claimed or reported: only the last tick due before may still be claimed
--   told      the last missed ticks: the accounted tick before them, the last of them, and the owner id that reported them
--   down      since when no instance has the job, because all were shut down; with the time when one registered it again
--   pause     "from until" of each pause that ends by itself, the oldest first, with a space between them: those that
--             ended after the last accounted tick, and at most the last 16
-- Next to it: the history, a list of runs, the newest first; the instances that have the job, a sorted set with the time
-- at which each was last seen; and the pause, a string "at until by reason", with 0 for one that does not end by
-- itself; the last two are percent-encoded, and - is none.
--
-- Needs clock.lua. A value written by another program counts as no record.

local function readRecord(recordKey)
  local fields = redis.pcall('HMGET', recordKey, 'schedule', 'owed', 'span', 'pause', 'missed', 'next', 'told', 'since', 'stated', 'down', 'by', 'other')
  if fields.err then fields = {} end
  return { schedule = fields[1], owed = fields[2], span = fields[3], pause = fields[4], missed = fields[5], next = fields[6], told = fields[7], since = fields[8], stated = fields[9], down = fields[10], by = fields[11] or '-', other = fields[12] }
end

-- The TTL of a job's keys in milliseconds: until keepMs after its next tick, and never shorter than before.
local function keepFor(recordKey, next, keepMs)
  local ahead = math.max(0, (tonumber(next) or 0) - now)
  return string.format('%.0f', math.max(redis.call('PTTL', recordKey), ahead + keepMs))
end

-- Extends the record, the history and the instances.
local function keepJob(recordKey, runsKey, instancesKey, ttl)
  redis.pcall('PEXPIRE', recordKey, ttl)
  redis.pcall('PEXPIRE', runsKey, ttl)
  redis.pcall('PEXPIRE', instancesKey, ttl)
end
