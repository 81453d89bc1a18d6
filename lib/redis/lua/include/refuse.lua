-- Raises Redis's own error, in every version, for a key that this library did not write: if readHolder returned
-- false.

redis.call('LLEN', lockKey)
return redis.call('GET', lockKey)
