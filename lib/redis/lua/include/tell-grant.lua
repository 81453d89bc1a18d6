-- Notifies a waiter of its grant: "seal token sentAt resource" in the inbox of its client; see grant-seal.ts. Needs
-- owner, the waiter's; tokenText; sentAt, the stamp of its place; channel, its inbox; and lockKey. An inline
-- fragment.

local terms = tokenText .. ' ' .. sentAt
redis.pcall('PUBLISH', channel,
  redis.sha1hex(terms .. ' ' .. owner) .. ' ' .. terms .. ' ' .. string.match(lockKey, '{([^{}]*)}$'))
