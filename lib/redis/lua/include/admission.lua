-- Decides which request is compatible with the holders of a lock: readers with readers, and permits of a semaphore
-- with one another as long as there are enough. Pure: no commands.
--
-- A request is written as its mode, or as "semaphore:count:total:resized".

-- about: stored with a grant; see holder.lua. It is the lease, and the label if there is one. For a place in the queue,
-- it is read as a whole.
local function parseRequest(text, about, label)
  if label then about = about .. ' ' .. label end
  if string.sub(text, 1, 10) ~= 'semaphore:' then return { mode = text, count = 1, about = about } end
  local count, total, resized = string.match(text, ':(%d+):(%d+):(%d)$')
  return {
    mode = 'semaphore', count = tonumber(count), total = tonumber(total), resized = resized == '1', about = about,
  }
end

-- The number of permits: a total that was set by a resize applies to all.
local function totalFor(lock, request)
  if request.resized and not lock.resized then return request.total end
  return lock.total
end

-- True if the request can never be granted: it uses the resource for something else.
local function isMismatch(lock, request)
  if (lock.mode == 'semaphore') ~= (request.mode == 'semaphore') then return true end
  if lock.mode ~= 'semaphore' then return false end
  if lock.total ~= request.total and not lock.resized and not request.resized then return true end
  return request.count > totalFor(lock, request)
end

-- True if it can be granted now, if it is its turn.
local function admits(lock, request)
  if not lock then return true end
  if lock.mode == 'read' then return request.mode == 'read' end
  return lock.mode == 'semaphore' and lock.used + request.count <= totalFor(lock, request)
end
