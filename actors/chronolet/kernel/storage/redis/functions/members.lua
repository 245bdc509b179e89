#!lua name=chronolet_members
-- The processes of a node and graceful moves of its shards (docs/adr/0037). Published functions are never changed or
-- replaced.
--
-- Input, output and rules as in functions.lua.
-- Next: members.py, its only caller.

local function broken(text)
  return {'BROKEN', text}
end

local function wrong(key, want)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then
    return broken(key .. ' is a ' .. found .. ', expected a ' .. want)
  end
end

-- KEYS  meta
-- ARGV  process entry seen_entry seen_counter       the last two are empty if there was none
-- OK       the entry is in the list; the counter of the name's former process and its request to drain are removed
-- CHANGED  the entry or the counter differs from the one seen: another process was faster, or the former one is alive
-- Idempotent: a repeat (after a lost reply) finds its own entry, which names its instance.
local function join(keys, args)
  local meta, answer = keys[1], wrong(keys[1], 'hash')
  if answer then return answer end
  if #args ~= 4 or args[1] == '' or args[2] == '' then return broken('join: malformed arguments') end
  local h = redis.call('HMGET', meta, 'member:' .. args[1], 'process:' .. args[1])
  if h[1] == args[2] then return {'OK'} end
  if (h[1] or '') ~= args[3] or (h[2] or '') ~= args[4] then return {'CHANGED'} end
  redis.call('HSET', meta, 'member:' .. args[1], args[2])
  redis.call('HDEL', meta, 'process:' .. args[1], 'drain:' .. args[1])
  return {'OK'}
end

-- KEYS  shard handover
-- ARGV  token notes ttl_milliseconds
-- OK            the shard has no owner (the epoch stays), and the notes are kept for its next owner
-- FENCED token  another owner holds the shard (empty: nobody); nothing was written
-- Idempotent: a repeat (after a lost reply) finds that this token was the last one released.
local function release(keys, args)
  local shard, handover = keys[1], keys[2]
  local answer = wrong(shard, 'hash') or wrong(handover, 'hash')
  if answer then return answer end
  local ttl = tonumber(args[3] or '')
  if #args ~= 3 or args[1] == '' or not ttl or ttl < 1 then return broken('release: malformed arguments') end
  local h = redis.call('HMGET', shard, 'token', 'released', 'moves')
  local token, moves = h[1] or '', tonumber(h[3] or '0')
  if token ~= args[1] then
    if h[2] == args[1] then return {'OK'} end
    return {'FENCED', token}
  end
  if not moves or moves >= 1e15 then return broken(shard .. ': moves is ' .. h[3] .. ', expected a small number') end
  local time = redis.call('TIME')
  local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
  redis.call('HSET', handover, 'token', token, 'notes', args[2])
  redis.call('PEXPIRE', handover, string.format('%.0f', ttl))
  redis.call('HSET', shard, 'token', '', 'released', token, 'unowned_since', now,
    'moves', string.format('%.0f', moves + 1))
  return {'OK'}
end

redis.register_function('chronolet_join_1', join)
-- Allowed on a full server (maxmemory) too: if the release failed there, no other process could take the shard.
redis.register_function{function_name = 'chronolet_release_1', callback = release, flags = {'allow-oom'}}
