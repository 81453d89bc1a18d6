-- reply is the error for one of several entries. Converts it to the text of Redis's error, or ends the script with it if
-- it concerns the server, such as READONLY.

-- A text in some versions; before Redis 7, it begins with the line of the script.
reply = type(reply) == 'table' and reply.err or tostring(reply)
if not string.find(reply, '^%u+ ') then reply = 'ERR ' .. reply end
local isOwn = string.find(reply, 'WRONGTYPE', 1, true) or string.find(reply, 'NOPERM', 1, true)
  or string.find(reply, 'The user executing', 1, true)
if not isOwn then return { err = reply } end
