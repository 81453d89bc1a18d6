-- Sends a message to the inbox of the client that runs it, in the same way as a grant: a client that does not receive it
-- would not receive a grant either. Leaves nothing behind. The DEL is there because a server that has become a replica
-- rejects it, as it rejects a lock: the client then looks for the primary.
--
-- KEYS   1  a key that no other client uses
-- ARGV   1  the inbox
--        2  the message: "probe nonce number"
-- Reply  how many connections of this server received it. On a cluster, those of other nodes are not counted. NOPERM if
--        an ACL forbids the channel
redis.call('DEL', KEYS[1])
return redis.pcall('PUBLISH', ARGV[1], ARGV[2])
