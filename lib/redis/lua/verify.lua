-- Checks whether this owner holds the lock, or a share of it. Changes nothing.
--
-- KEYS   1  lock
-- ARGV   1  owner
-- Reply  1 or 0

-- @include clock
-- @include holder
-- @include member

local holder = readHolder(KEYS[1])
if holder == '' then return findMember(KEYS[1], ARGV[1]) and 1 or 0 end
return holder == ARGV[1] and 1 or 0
