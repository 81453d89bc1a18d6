-- Sets how often a reentrant holder or a writer has entered. The caller sends the depth itself, not "one more", so
-- that a repeated command cannot count twice.
--
-- KEYS   1  lock
-- ARGV   1  owner
--        2  depth
--        3  lease in milliseconds; a longer lease is not shortened
-- Reply  1: set
--        0: not the owner; nothing was changed

-- @include holder
-- @include holder-renewal

local owner, token, mode, about = readHolder(KEYS[1])
if owner ~= ARGV[1] or mode == 'exclusive' then return 0 end
redis.call('HSET', KEYS[1], 'depth', ARGV[2])
renewHolder(KEYS[1], { owner = owner, token = token, mode = mode, about = about, depth = ARGV[2] }, ARGV[3])
return 1
