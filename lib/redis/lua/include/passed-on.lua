-- passedOn(done): the reply of a script that has granted to waiters. done is 1 or 0; 2 more if the sender has to
-- continue.

-- @include granting

local function passedOn(done)
  return isCut and done + 2 or done
end
