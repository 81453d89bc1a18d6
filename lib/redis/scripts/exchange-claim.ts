import { defineScript } from './script.js';

/**
 * Changes the claim of a tick, without the lock of its job.
 *
 * KEYS  1 claim
 * ARGV  1 who is to have the tick, or 'finished', or '' to look only, 2 whose claim it may replace, or '', 3 '1' to replace any
 *       claim but 'finished', 4 whose claim to give up, or '', 5 how long what stands then is remembered, in milliseconds, or ''
 * Reply what stands then; nil where nothing does
 */
export const EXCHANGE_CLAIM = defineScript(
  'exchangeClaim',
  `
local standing = redis.call('GET', KEYS[1])
if standing and standing == ARGV[4] then
  redis.call('DEL', KEYS[1])
  standing = false
end
local isOpen = not standing or standing == ARGV[2] or (ARGV[3] == '1' and standing ~= 'finished')
if ARGV[1] ~= '' and isOpen then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[5])
  return ARGV[1]
end
if standing and ARGV[5] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return standing
`,
);
