-- Which request is compatible with the holders of a lock. Readers go with readers, and permits of a semaphore with
-- one another as long as there are enough. Pure: no commands.
--
-- A request is written as its mode, or as "semaphore:count:total:resized".

-- about: what is stored with what it is granted; see holder.lua. It is the lease, and the label where there is one. Of a
-- place in the queue it is read as a whole.
local function parseRequest(text, about, label)
  if label then about = about .. ' ' .. label end
  if string.sub(text, 1, 10) ~= 'semaphore:' then return { mode = text, count = 1, about = about } end
  local count, total, resized = string.match(text, ':(%d+):(%d+):(%d)$')
  return {
    mode = 'semaphore', count = tonumber(count), total = tonumber(total), resized = resized == '1', about = about,
  }
end

-- How many permits there are: a total that somebody has decided on counts for all.
local function totalFor(lock, request)
  if request.resized and not lock.resized then return request.total end
  return lock.total
end

-- Whether the request cannot be granted, however long it waits: it takes the resource for something else.
local function isMismatch(lock, request)
  if (lock.mode == 'semaphore') ~= (request.mode == 'semaphore') then return true end
  if lock.mode ~= 'semaphore' then return false end
  if lock.total ~= request.total and not lock.resized and not request.resized then return true end
  return request.count > totalFor(lock, request)
end

-- Whether it can be granted now, if it is its turn.
local function admits(lock, request)
  if not lock then return true end
  if lock.mode == 'read' then return request.mode == 'read' end
  return lock.mode == 'semaphore' and lock.used + request.count <= totalFor(lock, request)
end
