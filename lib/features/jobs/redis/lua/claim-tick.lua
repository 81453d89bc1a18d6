-- Claims one tick of a singleton job for the whole fleet, and acquires the lock of the job. The claim is a string:
--   <owner>           claimed; the owner was not granted the run yet
--   <owner> runs      the owner was granted the run
--   <owner> reruns    the same, after another owner had been granted it; '<owner>~3 reruns' for the third attempt
--   returned          its owner gave the claim back before a run began; 'returned reruns' if an earlier run had begun
--   finished          the run has ended
--
-- KEYS   1  lock
--        2  claim
--        3  fence
--        4  the last accounted tick of the job: claimed, paused, or reported as missed
--        5  the history, if the claim has a note
--        6  the record
--        7  the pause
--        8  the instances
-- ARGV   1  owner
--        2  lease in milliseconds
--        3  TTL of the claim in milliseconds. For a tick that is not a time, it also caps the TTL of another owner's
--           claim
--        4  'skip' or 'wait': what to do while an earlier run holds the lock
--        5  what may be taken over from another owner if the lock is free: 'nothing', 'unbegun' or 'unfinished'
--        6  when the tick is due, in milliseconds since 1970; '' for a tick that is not a time
--        7  how much earlier it may be claimed, in milliseconds
--        8  how much later it may be claimed, in milliseconds
--        9  TTL of the last accounted tick in milliseconds
--        10  how many reruns of the tick may begin, or '' for any number
--        11  the kind of the run: 'tick', 'manual' or 'catchUp'. This and all that follow are the note, see JobNote
--        12  how many runs the history keeps
--        13  the schedule, or ''
--        14  when the previous tick was due, or ''. For a catch-up: when the last of its ticks was due
--        15  when the next tick is due, or ''
--        16  how long the record outlives the next tick, in milliseconds
--        17  the tick, encoded for the history
--        18  if schedules differ for longer than this, in milliseconds, it is not a deployment
--        19  '1' if this instance has registered the single date that the tick is
-- Reply  { status, number, flag }, see TickReply
--          granted       the fencing token; the attempt, 1 for the first run; for a catch-up: "count first last until" of its
--                        ticks, or ''; 1 if there was no record of the job; and once, if schedules differ for longer than
--                        that: an instance that follows the schedule of the record, and that schedule; otherwise ''
--          claimed       TTL of the lock in milliseconds; 0
--          taken         TTL of the lock in milliseconds; 1 if the run was granted
--          overlap       TTL of the lock in milliseconds; 0
--          otherDate     the date that is registered, in milliseconds since 1970; 0
--          late, early   how late the tick is, in milliseconds; 0
--          finished      0; 0
--          crashed       how many runs were granted, of which none finished; 0. From now on the tick is finished
--          paused        when the pause ends, 0 for never; 0; who requested it, and why
--          gap           the last accounted tick; how late the tick is, in milliseconds

-- @include clock
-- @include fence
-- @include holder
-- @include lease
-- @include holder-renewal
-- @include members
-- @include any-lock
-- @include claim-text
-- @include take
-- @include tick-due
-- @include job-record
-- @include job-instances
-- @include job-pause
-- @include job-runs
-- @include job-unbegun

local lockKey, claimKey, fenceKey, lastKey, runsKey, recordKey, pauseKey, instancesKey = unpack(KEYS)
local owner, leaseMs, keepMs, overlap, takeOver, dueAt, earlyMs, lateMs, lastKeepMs, maxReruns = unpack(ARGV, 1, 10)
local kind, historySize, schedule, previous, nextAt, recordKeepMs, entryTick, differMs, isDate = unpack(ARGV, 11, 19)

-- For example, one run for each of a million orders: they leave nothing behind.
local isRemembered = kind and (historySize ~= '0' or schedule ~= '' or nextAt ~= '')
if isRemembered then noteInstance(instancesKey, owner, recordKeepMs) end
local claim = redis.call('GET', claimKey)
-- The same text recurs, for example for an interval. A release may have shortened the interval.
if claim and dueAt == '' and takeOver == 'nothing' and redis.call('PTTL', claimKey) > tonumber(keepMs) then
  redis.call('PEXPIRE', claimKey, keepMs)
end
local function noteNext()
  redis.pcall('HSET', recordKey, 'next', nextAt, 'stated', string.format('%.0f', now), 'by', string.match(owner, '^[^/]*'))
end
-- This instance follows its schedule, even if another one claimed this tick first.
if claim and kind == 'tick' and schedule ~= '' and nextAt ~= '' then
  local told = redis.pcall('HGET', recordKey, 'next')
  local isOlder = type(told) == 'string' and (tonumber(told) or 0) < tonumber(nextAt)
  if isOlder and redis.call('HGET', recordKey, 'schedule') == schedule then noteNext() end
end
if claim == 'finished' or (takeOver ~= 'nothing' and not claim) then return { 'finished', 0, 0 } end
local claimant, state, attempt = readClaim(claim)
local isMine = claimant == owner
local isBegun = state ~= '' and not isMine and claimant ~= 'returned'
if isBegun then attempt = attempt + 1 end
local holder = readLock(lockKey)
if holder and holder.owner == owner and holder.token then
  renewHolder(lockKey, holder, leaseMs)
  return { 'granted', tonumber(holder.token), attempt, kind == 'catchUp' and readRecord(recordKey).span or nil }
end
local ttl = holder and holderTtl(lockKey) or 0
if claim and not isMine and claimant ~= 'returned' then
  -- Watching instances keep the claim in memory, however long the run takes.
  if takeOver ~= 'nothing' then redis.call('PEXPIRE', claimKey, keepMs) end
  if holder or takeOver == 'nothing' or (isBegun and takeOver == 'unbegun') then
    return { 'taken', ttl, isBegun and 1 or 0 }
  end
  if isBegun and maxReruns ~= '' and attempt > tonumber(maxReruns) + 1 then
    redis.call('SET', claimKey, 'finished', 'PX', keepMs)
    return { 'crashed', attempt - 1, 0 }
  end
end
local record = kind and readRecord(recordKey)
-- True if the record has another schedule that an instance still follows. See JobNote.schedule.
local function isOfOthers()
  local ahead, stated = tonumber(record.next or ''), tonumber(record.stated or '')
  if (record.schedule or '') == schedule or not ahead or not stated then return false end
  return now <= ahead + (tonumber(lateMs) or 60000) and now < stated + 172800000
end
-- This instance follows another schedule than the record has. Accurate to a minute.
local function noteOther()
  if kind ~= 'tick' or schedule == '' or (record.schedule or '') == '' then return nil end
  local since, at, told, text = string.match(record.other or '', '^(%d+) (%d+) (%d) %S+ (.*)$')
  if text ~= schedule or tonumber(at) < now - 172800000 then since, at, told = now, 0, '0' end
  local isNotice = told == '0' and tonumber(since) + tonumber(differMs) < now
  if not isNotice and tonumber(at) > now - 60000 then return nil end
  local instance = string.match(owner, '^[^/]*')
  local other = string.format('%.0f %.0f ', since, now) .. (isNotice and '1' or told) .. ' ' .. instance .. ' ' .. schedule
  redis.pcall('HSET', recordKey, 'other', other)
  return isNotice and record.by .. ' ' .. record.schedule or nil
end
local notice
local function noteSchedule()
  if isOfOthers() then
    notice = noteOther()
    return
  end
  if nextAt ~= '' then noteNext() end
  if schedule ~= '' and record.schedule ~= schedule then
    redis.pcall('HSET', recordKey, 'schedule', schedule)
    redis.pcall('HDEL', recordKey, 'owed')
  end
end
if dueAt ~= '' and not claim then
  local date = isDate == '1' and redis.pcall('HGET', recordKey, 'date')
  if type(date) == 'string' and tonumber(date) ~= tonumber(dueAt) then return { 'otherDate', tonumber(date), 0 } end
  local refusal, byMs = judgeTick(lastKey, dueAt, earlyMs, lateMs)
  -- A manual call claims the last tick that was due. For a new job, that was before it was registered.
  if refusal == 'late' and kind == 'tick' and record.since and record.since == redis.call('GET', lastKey) then
    if tonumber(dueAt) >= now - lateMs and (tonumber(nextAt) or 0) > now then refusal = nil end
  end
  if refusal then return { refusal, byMs, 0 } end
  -- Once this tick is accounted, no earlier one can be claimed.
  if kind and previous ~= '' and record.schedule == schedule then
    local last = tonumber(redis.call('GET', lastKey) or '')
    if last and last <= now + earlyMs and last < tonumber(previous) then return { 'gap', last, now - dueAt } end
  end
end
if kind == 'catchUp' then
  local till = string.match(record.span or '', '(%d+)$')
  if not claim and (record.owed ~= previous or tonumber(till or 0) < now) then return { 'finished', 0, 0 } end
end
local lastKeep, jobKeep = lastKeepMs, nil
if kind then
  jobKeep = keepFor(recordKey, nextAt, recordKeepMs)
  if isRemembered then lastKeep = string.format('%.0f', math.max(jobKeep, tonumber(lastKeepMs) or 0)) end
end
-- The reply to an earlier grant of this owner arrived too late, and now it does not get the run.
local function refuseUnbegun()
  if not kind or not isMine or state == '' then return end
  forgetRun(runsKey, recordKey, entryTick, attempt, kind == 'catchUp' and previous or '')
  if kind == 'catchUp' then redis.call('SET', claimKey, writeClaim('returned', attempt), 'PX', keepMs) end
end
if kind and kind ~= 'manual' then
  local at, till, by = readPause(pauseKey)
  if at and kind == 'tick' then
    -- It is finished for all instances, even those that ask after a resume.
    if dueAt ~= '' then noteTick(lastKey, dueAt, earlyMs, lastKeep) end
    redis.call('SET', claimKey, 'finished', 'PX', keepMs)
    noteSchedule()
    keepJob(recordKey, runsKey, instancesKey, jobKeep)
  end
  if at then
    refuseUnbegun()
    return { 'paused', till, 0, by }
  end
end
if holder and overlap == 'skip' then refuseUnbegun() end
if holder and kind == 'catchUp' and overlap == 'skip' then return { 'overlap', ttl, 0 } end
if dueAt ~= '' then noteTick(lastKey, dueAt, earlyMs, lastKeep) end
if kind then
  if record.since and kind == 'tick' then redis.pcall('HDEL', recordKey, 'since') end
  noteSchedule()
  if holder then keepJob(recordKey, runsKey, instancesKey, jobKeep) end
end
if holder and overlap == 'skip' then
  redis.call('SET', claimKey, 'finished', 'PX', keepMs)
  return { 'overlap', ttl, 0 }
end
local granted = writeClaim(owner, attempt)
if holder then
  -- A grant stays: this may be an old command that arrives after the run.
  redis.call('SET', claimKey, state == '' and owner or granted, 'PX', keepMs)
  return { 'claimed', ttl, 0 }
end
redis.call('SET', claimKey, granted, 'PX', keepMs)
local token = takeLock(lockKey, fenceKey, owner, 'exclusive', leaseMs, leaseMs)
if not kind then return { 'granted', token, attempt } end
if kind == 'catchUp' then redis.pcall('HDEL', recordKey, 'owed') end
local flags = string.rep('r', attempt - 1) .. (kind == 'manual' and 'm' or '') .. (kind == 'catchUp' and 'c' or '')
local entry = entryTick .. ' ' .. now .. ' ' .. (flags == '' and '-' or flags) .. ' ' .. string.match(owner, '^[^/]*')
-- The reply to an earlier grant of this owner arrived too late: that run never began.
if isMine and state ~= '' then dropOpenRun(runsKey, entryTick, attempt) end
addRuns(runsKey, historySize, entry .. ' ' .. string.format('%.0f', token))
keepJob(recordKey, runsKey, instancesKey, jobKeep)
local isNew = nextAt ~= '' and not record.next
return { 'granted', token, attempt, kind == 'catchUp' and record.span or '', isNew and 1 or 0, notice or '' }
