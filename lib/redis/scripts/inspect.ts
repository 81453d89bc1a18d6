import { ADMISSION } from './admission.js';
import { defineScript } from './script.js';
import { CLOCK, HOLDER, refuse } from './shared.js';

/**
 * Reads everything there is to know about a resource at one moment. Changes nothing. For operators: it takes longer with every
 * holder and every waiter there is, unlike all that locks are made of.
 *
 * KEYS  1 lock, 2 queue
 * Reply [mode, or '' when the lock is free; TTL in milliseconds; permits of a semaphore, or 0;
 *       [instance, fencing token, TTL in milliseconds, depth, permits, of each holder, one after another];
 *       [instance, mode, permits, of each who waits, in order, one after another]]
 *       No owner id: traces may show replies
 */
export const INSPECT = defineScript(
  'inspect',
  CLOCK,
  HOLDER,
  ADMISSION,
  `
-- What an owner id begins with.
local function instanceOf(owner)
  return string.match(owner, '^[^/]*')
end

local waiters = {}
-- The places come first, each with its data before its owner; then their expiries.
local members = redis.call('ZRANGE', KEYS[2], 0, -1)
for index = 1, #members / 3 * 2, 2 do
  local mode, expiry = string.match(members[index], '^ %d+ (%S+) (%d+) %d+$')
  if mode and tonumber(expiry) > now then
    local request = parseRequest(mode)
    waiters[#waiters + 1] = instanceOf(members[index + 1])
    waiters[#waiters + 1] = request.mode
    waiters[#waiters + 1] = request.count
  end
end

local holder, token, mode = readHolder(KEYS[1])
if holder == nil then return { '', 0, 0, {}, waiters } end
if not holder then
  ${refuse('KEYS[1]')}
end
local ttl = redis.call('PTTL', KEYS[1])
if holder ~= '' then
  local depth = mode == 'exclusive' and 1 or tonumber(redis.call('HGET', KEYS[1], holder)) or 1
  return { mode, ttl, 0, { instanceOf(holder), token, ttl, depth, 1 }, waiters }
end
local holders, total, lastTtl = {}, 0, 0
members = redis.call('HGETALL', KEYS[1])
for index = 1, #members, 2 do
  if members[index] == 'total' then total = tonumber(members[index + 1]) end
  local permits, memberToken, expiry = string.match(members[index + 1], '^(%d+) (%d+) (%d+)$')
  if permits and tonumber(expiry) > now then
    lastTtl = math.max(lastTtl, expiry - now)
    for _, value in ipairs({ instanceOf(members[index]), memberToken, expiry - now, 1, tonumber(permits) }) do
      holders[#holders + 1] = value
    end
  end
end
if #holders == 0 then return { '', 0, 0, {}, waiters } end
return { mode, lastTtl, total, holders, waiters }
`,
);
