-- Reads what is kept for a call of once. Sent as the command GET itself, which this script stands for.
--
-- KEYS   1  result
-- ARGV   none
-- Reply  the text, or nil

return redis.call('GET', KEYS[1])
