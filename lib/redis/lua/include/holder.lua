-- readHolder(lockKey, text): returns owner, fencing token, mode, about and depth of the holder; nothing if the lock is
-- free. text is the reply of GET, or its error, if the script has it already.
--
-- An exclusive lock is the string "owner token about". The lock of a reentrant holder or a writer is a hash with the
-- fields mode, owner, token and about, and depth after a re-entry. A shared lock (members.lua) has no single
-- owner: then the returned owner is the empty string, and the fields that readMembers takes follow the mode.
--
-- about is "lease" or "lease label". The lease is its length in milliseconds when it was granted or last renewed, which
-- was lease - TTL ago. A grant copies it from the waiter's place, and counts from its last keep. It is 0 if the lock was
-- released but is kept: see retain.lua. A label is JSON that begins with a brace.
--
-- Any other value at the key was not written by this library: then the result is false, and no owner of ours holds
-- anything. If another program has removed the token, the result is false; if it has removed about, about is ''.

local function readHolder(lockKey, text)
  text = text or redis.pcall('GET', lockKey)
  if not text then return nil end
  if type(text) == 'string' then
    local owner, token, lease, label = string.match(text, '^(%S+) (%d+) (%d+)(.*)$')
    if label == '' then return owner, token, 'exclusive', lease end
    if label and string.sub(label, 1, 2) == ' {' then return owner, token, 'exclusive', lease .. label end
    return false
  end
  -- For example NOPERM, if the user may not read.
  if not string.find(text.err, 'WRONGTYPE', 1, true) then return redis.call('GET', lockKey) end
  local fields = redis.pcall('HMGET', lockKey, 'mode', 'used', 'soonest', 'total', 'resized', 'owner', 'token', 'about', 'depth')
  if fields.err and string.find(fields.err, 'WRONGTYPE', 1, true) then return false end
  if fields.err then return redis.call('HMGET', lockKey, 'mode') end
  -- Must be a number: other programs can write here.
  if fields[6] and fields[1] ~= 'read' and fields[1] ~= 'semaphore' then
    local token, about = fields[7] or '', string.match(fields[8] or '', '^%d.*$')
    return fields[6], string.find(token, '^%d+$') and token or false, fields[1] or 'reentrant', about or '', fields[9]
  end
  local isShared = fields[1] == 'read' or (fields[1] == 'semaphore' and string.find(fields[4] or '', '^%d+$'))
  if isShared and string.find(fields[2] or '', '^-?%d+$') and string.find(fields[3] or '', '^%d+$') and #fields[3] <= 16 then
    return '', nil, fields[1], fields
  end
  return false
end
