import { ADMISSION } from './admission.js';
import { defineScript } from './script.js';
import { CLOCK, HOLDER } from './shared.js';

/**
 * Reads everything there is to know about a resource at one moment. Changes nothing.
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

local entries = {}
local fields = redis.call('HGETALL', KEYS[2])
for index = 1, #fields, 2 do
  local owner, mode, expiry = string.match(fields[index + 1], '^(%S+) (%S+) (%d+) %d+$')
  if owner and tonumber(expiry) > now then
    entries[#entries + 1] = { number = tonumber(fields[index]), owner = owner, request = parseRequest(mode) }
  end
end
table.sort(entries, function(a, b) return a.number < b.number end)
local waiters = {}
for _, entry in ipairs(entries) do
  waiters[#waiters + 1] = instanceOf(entry.owner)
  waiters[#waiters + 1] = entry.request.mode
  waiters[#waiters + 1] = entry.request.count
end

local holder, token, mode = readHolder(KEYS[1])
if not holder then return { '', 0, 0, {}, waiters } end
local ttl = redis.call('PTTL', KEYS[1])
if holder ~= '' then
  local depth = mode == 'exclusive' and 1 or tonumber(redis.call('HGET', KEYS[1], holder)) or 1
  return { mode, ttl, 0, { instanceOf(holder), token, ttl, depth, 1 }, waiters }
end
local holders, total, lastTtl = {}, 0, 0
local members = redis.call('HGETALL', KEYS[1])
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
