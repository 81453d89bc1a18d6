-- resize(lockKey, lock, total): sets the number of permits of a semaphore that readLock or readMembers returned.

-- This number of permits applies to all callers.
local function resize(lockKey, lock, total)
  lock.total, lock.resized = total, true
  redis.call('HSET', lockKey, 'total', total, 'resized', 1)
end
