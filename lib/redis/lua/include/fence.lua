-- mintToken(fenceKey): returns the next fencing token; see mint.lua.

-- @include clock

local function mintToken(fenceKey)

  -- @inline mint
  return token
end
