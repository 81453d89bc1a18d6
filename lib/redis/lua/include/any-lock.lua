-- readLock(lockKey): reads the lock, whatever its mode.

-- @include holder
-- @include members

-- Returns nil if the lock is free; owner, token, mode, about and depth of one holder; or see readMembers.
local function readLock(lockKey)
  local owner, token, mode, about, depth = readHolder(lockKey)
  if owner == nil then return nil end
  if not owner then
  -- @inline refuse
  end
  if owner ~= '' then return { owner = owner, token = token, mode = mode, about = about, depth = depth } end
  return readMembers(lockKey, about)
end
