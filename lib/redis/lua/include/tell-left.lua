-- Notifies a waiter in how many milliseconds it should ask: "seal kept left sentAt resource" in the inbox of its client; see
-- grant-seal.ts. Needs waiter, its owner id; sentAt, the stamp of its place; left; prefix, of the inboxes; and lockKey. Sets
-- receivers: the number of connections that received it, or an error. An inline fragment.

local said = 'kept ' .. left .. ' ' .. sentAt
local receivers = redis.pcall('PUBLISH', prefix .. 'inbox:' .. string.match(waiter, '^(.*)/'),
  redis.sha1hex(said .. ' ' .. waiter) .. ' ' .. said .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
