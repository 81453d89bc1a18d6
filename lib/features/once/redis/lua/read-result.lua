-- Reads the stored result of once. The client sends a plain GET instead; this script documents it.
--
-- KEYS   1  result
-- ARGV   none
-- Reply  the text, or nil

return redis.call('GET', KEYS[1])
