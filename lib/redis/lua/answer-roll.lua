-- Stores the answer of one instance to the open roll call; or its report, if the ACL keeps it from receiving roll calls.
--
-- KEYS   1  the roll call
--        2  the answers to it, or the reports
-- ARGV   1  nonce, or '' for a report
--        2  the client id of the instance
--        3  its answer
--        4  how long the answers are kept, in milliseconds
-- Reply  1, or 0 if that roll call is not open

-- @include clock

local answers, client, answer = KEYS[2], ARGV[2], ARGV[3]
if ARGV[1] == '' then
  answer = string.format('%.0f ', now) .. answer
  -- Each report checks two others, so that reports of dead instances do not pile up.
  local some = redis.pcall('HRANDFIELD', answers, 2, 'WITHVALUES')
  for index = 1, #some, 2 do
    if now - tonumber(string.match(some[index + 1], '^%d+') or 0) > tonumber(ARGV[4]) then
      redis.call('HDEL', answers, some[index])
    end
  end
elseif redis.call('HGET', KEYS[1], 'nonce') ~= ARGV[1] then
  return 0
end
redis.call('HSET', answers, client, answer)
redis.call('PEXPIRE', answers, ARGV[4])
return 1
