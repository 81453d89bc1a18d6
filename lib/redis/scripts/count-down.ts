import { LATCH, USE_LATCH } from './latch.js';
import { defineScript } from './script.js';
import { CLOCK } from './shared.js';

/**
 * Counts one id down, once. The last one opens the latch, and tells the clients that wait for it: "latch count name" in their
 * inboxes. An open latch stays until its TTL is over, and at least until the places of those who wait are: they find it even
 * where the message was lost.
 *
 * One script tells a bounded number of clients. Whoever sent it sends it again at once for the others; should it die before that, they
 * find out when they ask again.
 *
 * KEYS  1 latch, 2 those who wait for it
 * ARGV  1 count, 2 ttlMs, if it is new, 3 id, 4 what the inbox of a client begins with
 * Reply [count of the latch, how many are missing, TTL in milliseconds]; with another count than stated nothing was changed. A fourth
 *       element: there are more clients to be told
 */
export const COUNT_DOWN = defineScript(
  'countDown',
  CLOCK,
  LATCH,
  USE_LATCH,
  `
-- Where an ACL forbids it, or somebody else's key stands there, nobody is told; they find it with their heartbeats.
local function tellWaiters(count)
  local waiters, gone = redis.pcall('ZRANGE', KEYS[2], 0, 99, 'WITHSCORES'), {}
  local message = 'latch ' .. ARGV[1] .. ' ' .. string.match(KEYS[1], '{([^{}]*)}:latch$')
  for index = 1, #waiters, 2 do
    gone[#gone + 1] = waiters[index]
    if tonumber(waiters[index + 1]) > now then redis.pcall('PUBLISH', ARGV[4] .. waiters[index], message) end
  end
  local reply = latchReply(KEYS[1], count, 0)
  if #gone > 0 and type(redis.pcall('ZREM', KEYS[2], unpack(gone))) == 'number' and #gone == 100 then reply[4] = 1 end
  return reply
end

local count, remaining = useLatch(KEYS[1], ARGV[1], ARGV[2])
if count ~= tonumber(ARGV[1]) then return latchReply(KEYS[1], count, remaining) end
if remaining == 0 then return tellWaiters(count) end
redis.call('HSET', KEYS[1], '+' .. ARGV[3], '')
remaining = count + 1 - redis.call('HLEN', KEYS[1])
if remaining > 0 then return latchReply(KEYS[1], count, remaining) end

local lastsMs = redis.call('PTTL', KEYS[1])
if lastsMs < 0 then lastsMs = tonumber(ARGV[2]) end
local last = redis.pcall('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
lastsMs = math.max(1, lastsMs, (tonumber(last[2] or '') or 0) - now)
-- The ids are not needed any more. A million of them would stop Redis for a third of a second in DEL; where an ACL forbids
-- UNLINK they stay until the latch expires.
redis.pcall('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], 'count', ARGV[1], 'open', '1')
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', lastsMs))
return tellWaiters(count)
`,
);
