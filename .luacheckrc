-- What luacheck knows of the .lua files in lib/. `npm run lint` runs it on the assembled scripts.
stds.redis = {
  read_globals = {
    'redis', 'KEYS', 'ARGV', 'cjson', 'cmsgpack', 'struct', 'bit',
    'string', 'table', 'math', 'assert', 'error', 'ipairs', 'next', 'pairs', 'pcall', 'select', 'tonumber', 'tostring',
    'type', 'unpack', 'xpcall', 'getmetatable', 'setmetatable', 'rawequal', 'rawget', 'rawset',
  },
}
std = 'redis'
max_line_length = false
ignore = {
  -- Each byte counts for the SHA-1 of a script. These are for the next change of their lines.
  '311/mode', -- queue.lua
  '311/ttl', -- joining.lua
  '431/text', -- release.lua and renew.lua name a local variable like parameters of their includes
}
