import { ADMISSION } from './admission.js';
import { ANY_LOCK, MEMBER, MEMBERS, RENEWAL, RESIZING } from './members.js';
import { GIVING_UP, JOINING, QUEUE } from './queue.js';
import { FENCE, HOLDER, LEASE, TAKE } from './shared.js';

/**
 * `grantWaiting(lockKey, queueKey, fenceKey, lock, own)`: gives a lock that is free, or shared, to the first waiter who is
 * alive, and to those behind it as long as they can hold it together; each for what is left of its place. Tells their
 * clients: "seal token sentAt resource" in the inbox, whose name begins like that of the fence; see grant-seal.ts. Gives the lock as it is then, and who is first in the queue, where
 * somebody is who could not be granted.
 *
 * `lock` is what readLock gave, or nil. It stops before `own`, who is the one that asks and need not be told. A place that has
 * expired, and a client whose inbox nobody listens to, are passed over; not on a cluster, where a node only knows its own listeners. Where an ACL forbids the channel the grant stands (an
 * error is a table), and the waiter finds it with its heartbeat.
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
    local number, owner, mode, leaseMs, sentAt = firstWaiter(queueKey)
    if not number or owner == own then return lock, owner end
    local request = parseRequest(mode)
    if lock and isMismatch(lock, request) then
      -- Its next heartbeat tells it so.
      leaveQueue(queueKey, number, owner)
    elseif not admits(lock, request) then
      return lock, owner
    else
      leaveQueue(queueKey, number, owner)
      local token, shared = take(lockKey, fenceKey, lock, owner, request, string.format('%.0f', leaseMs))
      local terms = string.format('%.0f', token) .. ' ' .. sentAt
      local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.match(owner, '^(.*)/'),
        redis.sha1hex(terms .. ' ' .. owner) .. ' ' .. terms .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
      local isTold = type(receivers) == 'table' or receivers > 0 or inCluster > 0
      if isTold and not shared then return { owner = owner, token = token, mode = mode } end
      local wasFree = not lock
      lock = shared
      if not isTold then lock = select(2, giveBack(lockKey, owner, shared)) end
      if not isTold and wasFree then lock = nil end
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
 * Gives 1 if it held it; whether it has looked at the lock, and the lock as it is then. `text` is as for readHolder. What is free for those who wait goes to them in any case: a holder may
 * have died, or a writer given up behind whom readers stand. Needs CLOCK and GRANTING.
 */
export const RELEASING = `${GIVING_UP}
local function releaseLock(lockKey, queueKey, fenceKey, owner, text)
  local holder, _, _, fields = readHolder(lockKey, text)
  -- Where somebody else's key stands in the place of the queue, the lock is freed all the same.
  local isQueue, number, tail = pcall(findPlace, queueKey, owner)
  if isQueue and number then giveUp(queueKey, number, tail, owner) end
  if holder and holder ~= '' and holder ~= owner then return 0, false end
  local released, lock = 0, nil
  -- First, also where the lock is passed on: without memory to spare, Redis lets a script begin with a deletion only.
  if holder then released, lock = giveBack(lockKey, owner, holder == '', fields) end
  if isQueue and tail > 0 then lock = grantWaiting(lockKey, queueKey, fenceKey, lock) end
  return released, true, lock
end
`;

/**
 * `acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters, isKnown, known)`: the whole of acquire,
 * where the lock may be held or waited for. `known`: what releaseLock has found, in the same step. Gives the reply of the script. Needs CLOCK and GRANTING.
 */
export const ACQUIRING = `${[LEASE, ANY_LOCK, MEMBER, RENEWAL, RESIZING, JOINING].join('\n')}
local function acquireLock(lockKey, queueKey, fenceKey, owner, mode, leaseMs, sentAt, maxWaiters, isKnown, known)
  -- Read before anything is written: whatever is wrong with a key must not leave a lock behind.
  local number, tail = findPlace(queueKey, owner)
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
  if tail > 0 and (not lock or lock.used) then
    -- A holder died, or a writer before whom readers wait: whoever is next comes before this one.
    lock, first = grantWaiting(lockKey, queueKey, fenceKey, lock, owner)
    -- A semaphore that only dead waiters were granted is free, however many permits they took it to have.
    if lock and lock.used == 0 then lock = nil end
    number, tail = findPlace(queueKey, owner)
  end
  local isMisfit = lock and isMismatch(lock, request)
  if not isMisfit and admits(lock, request) and (not first or first == owner) then
    if number then leaveQueue(queueKey, number, owner) end
    return (take(lockKey, fenceKey, lock, owner, request, leaseMs))
  end
  local ttl = lock.mode == 'semaphore' and math.max(1, lock.soonest - now) or holderTtl(lockKey)
  if isMisfit then
    if number then leaveQueue(queueKey, number, owner) end
    return { 'mismatch', ttl, lock.mode, lock.total or 1 }
  end
  if sentAt == '' then return { 'busy', ttl } end
  if not joinQueue(queueKey, number, tail, owner, mode, leaseMs, sentAt, tonumber(maxWaiters)) then
    return { 'full', ttl }
  end
  if request.resized and not lock.resized then
    -- From now on its total counts for those before it as well.
    resize(lockKey, lock, request.total)
    grantWaiting(lockKey, queueKey, fenceKey, lock)
  end
  return { 'queued', ttl }
end
`;
