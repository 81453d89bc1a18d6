import { ADMISSION } from './admission.js';
import { ANY_LOCK, MEMBER, MEMBERS, RENEWAL, RESIZING } from './members.js';
import { JOINING, QUEUE } from './queue.js';
import { FENCE, HOLDER, LEASE, TAKE } from './shared.js';

/**
 * `grantWaiting(lockKey, queueKey, fenceKey, lock, own)`: gives a lock that is free, or shared, to the first waiter who is
 * alive, and to those behind it as long as they can hold it together; each for what is left of its place. Tells their
 * clients: "seal token sentAt resource" in the inbox, whose name begins like that of the fence; see grant-seal.ts. Gives the lock as
 * it is then, and who is first in the queue, where somebody is who was not granted; an empty string where that is not known yet.
 *
 * `lock` is what readLock gave, or nil. It stops before `own`, who is the one that asks and need not be told. A place that has
 * expired, and a client whose inbox nobody listens to, are passed over; not on a cluster, where a node only knows its own listeners.
 * Who listens to a pattern is no client. Where an ACL forbids the channel the grant stands (an error is a table), and the waiter
 * finds it with its heartbeat.
 *
 * One script passes over, and grants, a bounded number of waiters: then it sets `isCut`. A script that frees something says so in its
 * reply, and its sender asks again at once, by a release of nobody's. Should it die before that, the next heartbeat of any waiter goes
 * on; and a contender whose own script was cut is told to ask again: at once where it does not wait, otherwise in a moment.
 */
const GRANT = `
local function take(lockKey, fenceKey, lock, owner, request, leaseMs)
  if request.mode ~= 'read' and request.mode ~= 'semaphore' then
    return takeLock(lockKey, fenceKey, owner, request.mode, leaseMs)
  end
  local token = mintToken(fenceKey)
  return token, addMember(lockKey, lock, owner, request, string.format('%.0f', token), leaseMs)
end

-- What an owner holds, alone or as a member, is free. Gives 1 if it still held it, and the lock as it is then. The
-- fields are those that readHolder gave, where it did.
local function giveBack(lockKey, owner, isShared, fields)
  if isShared then return removeMember(lockKey, owner, fields) end
  return redis.call('DEL', lockKey), nil
end

local function grantWaiting(lockKey, queueKey, fenceKey, lock, own)
  local prefix, inCluster = string.gsub(string.sub(fenceKey, 1, -6), '{[^{}]*}:$', '')
  while true do
    local owner, number, mode, leaseMs, sentAt, data = firstWaiter(queueKey)
    if not number or owner == own then return lock, owner end
    local request = parseRequest(mode)
    local isMisfit = lock and isMismatch(lock, request)
    if not isMisfit and not admits(lock, request) then
      -- Those whose lease is over, and who were not looked at yet, may have what it needs.
      isCut = isCut or lock.isPartial
      return lock, owner
    end
    if budget <= 0 then
      isCut = true
      return lock, owner
    end
    local channel = prefix .. 'inbox:' .. string.match(owner, '^(.*)/')
    leaveQueue(queueKey, number, owner, data)
    budget = budget - 3
    local isDeaf = false
    if inCluster == 0 then
      local listeners = redis.pcall('PUBSUB', 'NUMSUB', channel)
      if listeners.err or listeners[2] == 0 then
        -- PUBLISH also counts who listens to a pattern; but without the right to it nothing is certain.
        local receivers = redis.pcall('PUBLISH', channel, '')
        isDeaf = type(receivers) == 'number' and (receivers == 0 or not listeners.err)
      end
    end
    -- One that takes the resource for something else is told so by its next heartbeat.
    if not isMisfit and not isDeaf then
      budget = budget - 3
      local token, shared = take(lockKey, fenceKey, lock, owner, request, string.format('%.0f', leaseMs))
      local terms = string.format('%.0f', token) .. ' ' .. sentAt
      redis.pcall('PUBLISH', channel,
        redis.sha1hex(terms .. ' ' .. owner) .. ' ' .. terms .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
      if not shared then return { owner = owner, token = token, mode = mode } end
      lock = shared
    end
  end
end
`;

/**
 * Everything that passes a lock on is made of these, and nothing else is in it: each function costs a script what a command
 * costs, whether it is called or not. Needs CLOCK.
 */
export const GRANTING = [FENCE, TAKE, HOLDER, MEMBERS, ADMISSION, QUEUE, GRANT].join('\n');

/**
 * `releaseLock(lockKey, queueKey, fenceKey, owner, text)`: leaves the queue, and passes on or frees what this owner holds.
 * Gives 1 if it held it; whether it has looked at the lock, and the lock as it is then. `text` is as for readHolder. What is free
 * for those who wait goes to them in any case: a holder may have died, or a writer given up behind whom readers stand. Needs CLOCK
 * and GRANTING.
 */
export const RELEASING = `
local function releaseLock(lockKey, queueKey, fenceKey, owner, text)
  local holder, _, _, fields = readHolder(lockKey, text)
  -- Where somebody else's key stands in the place of the queue, the lock is freed all the same.
  local isQueue, number = pcall(findPlace, queueKey, owner)
  if isQueue and number then leaveQueue(queueKey, number, owner) end
  -- Another owner's, or somebody else's key.
  if holder == false or (holder and holder ~= '' and holder ~= owner) then return 0, false end
  local released, lock = 0, nil
  -- First, also where the lock is passed on: without memory to spare, Redis lets a script begin with a deletion only.
  if holder then released, lock = giveBack(lockKey, owner, holder == '', fields) end
  if isQueue then lock = grantWaiting(lockKey, queueKey, fenceKey, lock) end
  return released, true, lock
end
`;

/**
 * `passedOn(done)`: the reply of a script that has passed something on. What it has done, 1 or 0; and 2 more where whoever sent it
 * has to go on. Needs GRANTING.
 */
export const PASSED_ON = `
local function passedOn(done)
  return isCut and done + 2 or done
end
`;

/**
 * `acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters, isKnown, known)`: the whole of acquire,
 * where the lock may be held or waited for. `known`: what releaseLock has found, in the same step. Gives the reply of the script. Needs CLOCK and GRANTING.
 */
export const ACQUIRING = `${[LEASE, ANY_LOCK, MEMBER, RENEWAL, RESIZING, JOINING].join('\n')}
local function acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters, isKnown, known)
  -- Read before anything is written: whatever is wrong with a key must not leave a lock behind.
  local number = findPlace(queueKey, owner)
  local lock, first, held = known, nil, nil
  if not isKnown then lock = readLock(lockKey) end
  if lock and lock.used == 0 then lock = nil end
  if lock and lock.used then
    held = renewMember(lockKey, owner, leaseMs)
  elseif lock and lock.owner == owner then
    lengthen(lockKey, leaseMs)
    held = lock.token
  end
  if held then
    if number then leaveQueue(queueKey, number, owner) end
    return tonumber(held)
  end
  local request = parseRequest(mode)
  if not lock or lock.used then
    -- A holder died, or a writer before whom readers wait: whoever is next comes before this one.
    lock, first = grantWaiting(lockKey, queueKey, fenceKey, lock, owner)
    -- This raises Redis's own error.
    if isStrange then redis.call('LLEN', queueKey) end
    if number then number = findPlace(queueKey, owner) end
  end
  local isMisfit = lock and isMismatch(lock, request)
  if not isMisfit and (not first or first == owner) and admits(lock, request) then
    if number then leaveQueue(queueKey, number, owner) end
    return (take(lockKey, fenceKey, lock, owner, request, leaseMs))
  end
  -- In a moment there is more to be known.
  local ttl = 1
  if lock and not isCut and not lock.isPartial then
    ttl = lock.mode == 'semaphore' and math.max(1, lock.soonest - now) or holderTtl(lockKey)
  end
  if isMisfit then
    if number then leaveQueue(queueKey, number, owner) end
    return { 'mismatch', ttl, lock.mode, lock.total or 1 }
  end
  if sentAt == '' then return { 'busy', ttl, (isCut or (lock and lock.isPartial)) and 1 or nil } end
  if not joinQueue(queueKey, number, owner, mode, leaseMs, sentAt, tonumber(maxWaiters)) then
    return { 'full', ttl }
  end
  if request.resized and lock and lock.used and not lock.resized then
    -- From now on its total counts for those before it as well.
    resize(lockKey, lock, request.total)
    grantWaiting(lockKey, queueKey, fenceKey, lock)
  end
  return { 'queued', ttl }
end
`;
