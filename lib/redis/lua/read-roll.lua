-- Reads the answers to a roll call, or which instances are connected. Changes nothing.
--
-- KEYS   1  the answers
-- ARGV   1  'count', 'answers' or 'connected'
--        2  answers: the cursor, first 0. connected: a pattern for the inboxes
--        3  answers: about how many to return
-- Reply  count: how many there are. answers: { the cursor, 0 at the end, { client id, answer, … } }. connected:
--        the inboxes that this server knows, or NOPERM if an ACL forbids it

local command = ARGV[1]
if command == 'count' then return redis.call('HLEN', KEYS[1]) end
if command == 'answers' then return redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3]) end
return redis.pcall('PUBSUB', 'CHANNELS', ARGV[2])
