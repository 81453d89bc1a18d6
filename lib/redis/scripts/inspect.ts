import { defineScript } from './script.js';
import { CLOCK, HOLDER } from './shared.js';

/**
 * Reads everything there is to know about a resource at one moment. Changes nothing.
 *
 * KEYS  1 lock, 2 queue
 * Reply [holder, fencing token, depth, mode, TTL in milliseconds, [owner ids of those who wait, in order]]; the first four
 *       are empty strings when the lock is free
 */
export const INSPECT = defineScript(
  'inspect',
  CLOCK,
  HOLDER,
  `
local entries = {}
local fields = redis.call('HGETALL', KEYS[2])
for index = 1, #fields, 2 do
  local owner, expiry = string.match(fields[index + 1], '^(%S+) %S+ (%d+) %d+$')
  if owner and tonumber(expiry) > now then entries[#entries + 1] = { number = tonumber(fields[index]), owner = owner } end
end
table.sort(entries, function(a, b) return a.number < b.number end)
local waiters = {}
for index, entry in ipairs(entries) do waiters[index] = entry.owner end
local holder, token, depth, mode = readHolder(KEYS[1])
if not holder then return { '', '', '', '', 0, waiters } end
return { holder, token, depth, mode, redis.call('PTTL', KEYS[1]), waiters }
`,
);
