-- readClaim(claim): returns its claimant, its state, and the attempt: 1 for the first run of the tick, 2 for its first rerun.
-- writeClaim(claimant, attempt): the text of a claim whose run is granted, or of one that is returned. From the third attempt
-- on, the number follows the claimant: versions that do not count attempts read "<claimant>~3 reruns" as a rerun of another.

local function readClaim(claim)
  local claimant, state = string.match(claim or '', '^(%S*) ?(%S*)$')
  local plain, attempt = string.match(claimant or '', '^(.*)~(%d%d?%d?)$')
  return plain or claimant, state, tonumber(attempt) or (state == 'reruns' and 2 or 1)
end

local function writeClaim(claimant, attempt)
  if attempt > 1 then return claimant .. (attempt > 2 and '~' .. attempt or '') .. ' reruns' end
  return claimant == 'returned' and claimant or claimant .. ' runs'
end
