-- Keeps the answer of one instance to the roll call that stands.
--
-- KEYS   1  the roll call
--        2  the answers to it
-- ARGV   1  nonce
--        2  the client id of the instance
--        3  its answer
--        4  how long the answers are kept, in milliseconds
-- Reply  1, or 0 if that roll call does not stand

if redis.call('HGET', KEYS[1], 'nonce') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
