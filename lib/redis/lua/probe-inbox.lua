-- Sends a message to the inbox of the client that runs it, by the way of a grant: a client that does not receive it
-- would not receive a grant either. Leaves nothing behind. DEL is there because a server that has become a replica
-- refuses it, as it refuses a lock: the client then looks for the primary.
--
-- KEYS   1  a key of its own, which no other client has
-- ARGV   1  the inbox
--        2  the message: "probe nonce number"
-- Reply  how many connections of this server received it. On a cluster, those of other nodes are not counted. NOPERM if
--        an ACL forbids the channel
redis.call('DEL', KEYS[1])
return redis.pcall('PUBLISH', ARGV[1], ARGV[2])
