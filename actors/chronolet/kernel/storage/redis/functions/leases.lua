#!lua name=chronolet_2
-- Leases with a renewal counter, the second library of a node's functions (docs/adr/0034). Published functions are
-- never changed or replaced: `chronolet_renew_1` and `chronolet_acquire_1` stay in library chronolet_1 for processes of
-- older releases.
--
-- Input, output and rules as in functions.lua.
-- Next: store.py, its only caller.

local function broken(text)
  return {'BROKEN', text}
end

-- A number from a key or an argument: digits only, exact as a double; nil for anything else.
local function count(text)
  if text and string.match(text, '^%d+$') and #text <= 15 then return tonumber(text) end
end

local function wrong(key, want)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then
    return broken(key .. ' is a ' .. found .. ', expected a ' .. want)
  end
end

-- KEYS  alive:<process> meta shard*
-- ARGV  process info ttl_milliseconds number answered
--       answered: the number of the process's last renewal that got a reply, 0 for a process that begins
-- OK known token*       The process's entry in meta is now at least `number`, and the informational key lasts for
--                       another time-to-live. A process that begins always sets the entry, because an earlier one may
--                       be that of a former process of the same name.
--                       known: 0 if the entry was below `answered`, because a takeover has removed it or the server has
--                       lost renewals; only a hint if a call since then got no reply
--                       token: the current token of each shard; empty if the shard has no owner, or if its key is of
--                       the wrong type, which does not affect the other shards
local function renew(keys, args)
  local answer = wrong(keys[1], 'string') or wrong(keys[2], 'hash')
  if answer then return answer end
  local ttl, number, answered = count(args[3]), count(args[4]), count(args[5])
  if not ttl or ttl < 1 then return broken('renew: the time-to-live must be at least 1 ms') end
  if not number or not answered or number < 1 then return broken('renew: malformed number') end
  local field = 'process:' .. args[1]
  local before = count(redis.call('HGET', keys[2], field)) or 0
  redis.call('SET', keys[1], args[2], 'PX', string.format('%.0f', ttl))
  -- A call that timed out may be executed after a later one.
  if number > before or answered == 0 then redis.call('HSET', keys[2], field, string.format('%.0f', number)) end
  local reply = {'OK', before >= answered and 1 or 0}
  for i = 3, #keys do
    reply[#reply + 1] = not wrong(keys[i], 'hash') and redis.call('HGET', keys[i], 'token') or ''
  end
  return reply
end

-- KEYS  shard alive:<owner in expected token> meta
-- ARGV  expected_token process schema proof seen
--       proof: released the shard has no owner, or this process owns it
--              lock     the owner's life lock is free, so the owner is dead
--              counter  the owner's entry in meta has stayed `seen` (empty: none) for a time-to-live; an owner without
--                       an entry, such as one of a release before this library, must have no key alive:<owner> either
-- OK {field value}*                                   the shard's hash, with its new token
-- NOTFREE alive|changed|newer_schema token            alive: there is an owner and no proof, or its entry has changed
-- Idempotent: a repeat (after a lost reply) finds its own token and gets the same reply, while that token is valid.
local function acquire(keys, args)
  local shard, alive, meta = keys[1], keys[2], keys[3]
  local answer = wrong(shard, 'hash') or wrong(meta, 'hash')
  if answer then return answer end
  local schema = tonumber(args[3])
  if not schema or #args ~= 5 then return broken('acquire: malformed arguments') end
  local h = redis.call('HMGET', shard, 'token', 'epoch', 'schema', 'acquired_from')
  local token, epoch = h[1] or '', count(h[2] or '0')
  if not epoch then return broken(shard .. ': epoch is ' .. h[2] .. ', expected at most 15 digits') end
  local owner = string.match(token, '^%d+:(.+)$') or ''
  if token ~= args[1] then
    if owner == args[2] and h[4] == args[1] then
      answer = redis.call('HGETALL', shard)
      table.insert(answer, 1, 'OK')
      return answer
    end
    return {'NOTFREE', 'changed', token}
  end
  if (tonumber(h[3] or '0') or 0) > schema then return {'NOTFREE', 'newer_schema', token} end
  if owner ~= '' and owner ~= args[2] then
    if args[4] == 'counter' then
      local now = redis.call('HGET', meta, 'process:' .. owner) or ''
      if now ~= '' and now ~= args[5] then return {'NOTFREE', 'alive', token} end
      if now == '' and redis.call('EXISTS', alive) == 1 then return {'NOTFREE', 'alive', token} end
    elseif args[4] ~= 'lock' then
      return {'NOTFREE', 'alive', token}
    end
    redis.call('DEL', alive)
    redis.call('HDEL', meta, 'process:' .. owner)
  end
  epoch = string.format('%.0f', epoch + 1)
  local time = redis.call('TIME')
  redis.call('HSET', shard, 'token', epoch .. ':' .. args[2], 'epoch', epoch, 'acquired_from', token,
    'acquired_at', string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)))
  redis.call('HDEL', shard, 'unowned_since')
  answer = redis.call('HGETALL', shard)
  table.insert(answer, 1, 'OK')
  return answer
end

-- Functions registered here also work on a full server (maxmemory): they need almost no memory and lead to calls that
-- free it.
local function register_for_full(name, callback)
  redis.register_function{function_name = name, callback = callback, flags = {'allow-oom'}}
end

register_for_full('chronolet_renew_2', renew)
register_for_full('chronolet_acquire_2', acquire)
