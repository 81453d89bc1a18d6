-- readHolder(lockKey, text): returns owner, fencing token, mode and label of the holder; nothing if the lock is free.
-- text is the reply of GET, or its error, if the script has it already.
--
-- An exclusive lock is the string "owner token", or "owner token label". A lock of a reentrant holder or of a writer is
-- a hash with the fields mode, owner, token, and a field named like the owner with the depth; and label, if it has one.
-- A shared lock (members.lua) has no single owner: then the returned owner is the empty string, and the fields that
-- readMembers takes follow the mode. A label is JSON that begins with a brace; nil where there is none.
-- Any other value at the key was not written by this library: then the result is false, and no owner of ours holds
-- anything. The token is false where another program has removed it.

local function readHolder(lockKey, text)
  text = text or redis.pcall('GET', lockKey)
  if not text then return nil end
  if type(text) == 'string' then
    local owner, token, label = string.match(text, '^(%S+) (%d+)(.*)$')
    if label == '' then return owner, token, 'exclusive' end
    if label and string.sub(label, 1, 2) == ' {' then return owner, token, 'exclusive', string.sub(label, 2) end
    return false
  end
  -- Such as the NOPERM of a user who may not read.
  if not string.find(text.err, 'WRONGTYPE', 1, true) then return redis.call('GET', lockKey) end
  local fields = redis.pcall('HMGET', lockKey, 'mode', 'used', 'soonest', 'total', 'resized', 'owner', 'token', 'label')
  if fields.err and string.find(fields.err, 'WRONGTYPE', 1, true) then return false end
  if fields.err then return redis.call('HMGET', lockKey, 'mode') end
  -- What is counted with is a number: other programs can write here.
  if fields[6] and fields[1] ~= 'read' and fields[1] ~= 'semaphore' then
    return fields[6], string.find(fields[7] or '', '^%d+$') and fields[7] or false, fields[1] or 'reentrant', fields[8] or nil
  end
  local isShared = fields[1] == 'read' or (fields[1] == 'semaphore' and string.find(fields[4] or '', '^%d+$'))
  if isShared and string.find(fields[2] or '', '^-?%d+$') and string.find(fields[3] or '', '^%d+$') and #fields[3] <= 16 then
    return '', nil, fields[1], fields
  end
  return false
end
