#!lua name=chronolet_steps_2
-- The step, second version (docs/adr/0042): entries carry the time at which they were written if their ids do not show
-- it. Published functions are never changed or replaced: `chronolet_step_1` stays in library chronolet_1 for processes
-- of older releases, which can read the entries that either version writes.
--
-- Ids never go back. Once the server's clock has been ahead, their milliseconds stand still until real time has caught
-- up. The data of each entry written in that time, a msgpack map, gets one more field at its end: `_time`, the server's
-- time in milliseconds, as an unsigned integer of 64 bits. Readers that do not know the field ignore it.
--
-- Input, output and rules as in functions.lua.
-- Next: step.py, its only caller.

-- From how many milliseconds ahead of the server's clock an id's entry gets `_time`. The clocks of a master and its
-- replicas differ by less.
local AHEAD = 1000

-- '<ms>-<n>' as two numbers; nil if it is malformed or has more than 15 digits in a part.
local function parse(id)
  local ms, n = string.match(id or '', '^(%d+)-(%d+)$')
  if not ms or #ms > 15 or #n > 15 then return nil end
  return tonumber(ms), tonumber(n)
end

local function spell(ms, n)
  return string.format('%.0f-%.0f', ms, n)
end

-- Whether position a is after position b; both are known to be well formed.
local function later(a, b)
  local a_ms, a_n = parse(a)
  local b_ms, b_n = parse(b)
  return a_ms > b_ms or (a_ms == b_ms and a_n > b_n)
end

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function broken(text)
  return {'BROKEN', text}
end

-- A reply if the key exists and has another type, else nil.
local function wrong(key, want)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then
    return broken(key .. ' is a ' .. found .. ', expected a ' .. want)
  end
end

-- The last id generated for a stream ('0-0' if there is no stream), and the number of entries ever added.
local function last_of(key)
  if redis.call('EXISTS', key) == 0 then return '0-0', 0 end
  local info, last, added = redis.call('XINFO', 'STREAM', key), '0-0', 0
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then last = info[i + 1] end
    if info[i] == 'entries-added' then added = info[i + 1] end
  end
  return last, added
end

-- The ms for the next entries of the log, the n of the last one, and the server's time; or nil and a reply. An entry
-- that another program added uses up one number, so n is the larger of the last id's n and the number of entries added.
local function room_in_log(log, count)
  local last, added = last_of(log)
  local ms, n = parse(last)
  if not ms then
    return nil, broken(log .. ': its last id ' .. last .. ' leaves no room for more (15 digits at most)')
  end
  if added > n then n = added end
  local time = now()
  if time > ms then ms = time end
  if n + count >= 1e15 or ms >= 1e15 then
    return nil, broken(log .. ': ids are exhausted after ' .. last)
  end
  return ms, n, time
end

-- Whether the log still has the entry at a position that was read from it, or has trimmed it since. False if the log
-- has lost its tail with that entry: a process that has read it must not act on it.
local function holds(log, at)
  if #redis.call('XRANGE', log, at, at) > 0 then return true end
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if first then return later(first[1], at) end
  return not later(at, (last_of(log)))
end

-- nil if the token owns the shard, else a reply.
local function owned(shard, token)
  local answer = wrong(shard, 'hash')
  if answer then return answer end
  local held = redis.call('HGET', shard, 'token') or ''
  if token == nil or token == '' or held ~= token then return {'FENCED', held} end
end

-- The data, a msgpack map, with the field `_time` added at its end; unchanged if it is no map or has too many fields.
local function timed(data, time)
  local kind = string.byte(data, 1)
  local field = '\165_time\207' .. struct.pack('>I4I4', math.floor(time / 4294967296), time % 4294967296)
  if kind and kind >= 128 and kind < 143 then return string.char(kind + 1) .. string.sub(data, 2) .. field end
  if kind == 143 then return '\222\0\16' .. string.sub(data, 2) .. field end
  if kind == 222 and #data >= 3 then
    local count = struct.unpack('>I2', string.sub(data, 2, 3))
    if count < 65535 then return '\222' .. struct.pack('>I2', count + 1) .. string.sub(data, 4) .. field end
  end
  return data
end

local function append(log, id, args, i, time)
  local data = time and timed(args[i + 5], time) or args[i + 5]
  redis.call('XADD', log, id, 'type', args[i], 'entity', args[i + 1], 'subject', args[i + 2],
    'actor', args[i + 3], 'cause', args[i + 4], 'data', data)
end

-- Check everything before the first write. Returns a reply, or nil with version, ms, n and the server's time.
local function check_step(keys, args, h, records, dead, forget)
  if not records or not dead or not forget or #args ~= 11 + 6 * records + 6 * dead + forget then
    return broken('step: wrong number of arguments')
  end
  local version = tonumber(h[2] or '0')
  if not version or version >= 1e15 then
    return broken(keys[2] .. ': version is ' .. h[2] .. ', expected a number below 10^15')
  end
  if version ~= tonumber(args[2]) or (h[5] or '0-0') ~= args[5] or (h[6] or '0-0') ~= args[7] then
    return {'CONFLICT', version, h[5] or '0-0', h[6] or '0-0', h[3] or '', h[4] or '0-0'}
  end
  for i = 5, 7, 2 do
    if not parse(args[i]) or not parse(args[i + 1]) or later(args[i], args[i + 1]) then
      return broken('step: cursor ' .. args[i] .. ' cannot become ' .. args[i + 1])
    end
  end
  local answer = wrong(keys[1], 'stream') or wrong(keys[3], 'stream') or (dead > 0 and wrong(keys[4], 'stream'))
  if answer then return answer end
  if redis.call('EXISTS', keys[1]) == 0 then return broken(keys[1] .. ' is gone') end
  -- What the step consumes must still be there: the server may have lost it after the host read it. A mailbox keeps
  -- each entry until the step that consumes it.
  local lost_log = args[5] ~= args[6] and not holds(keys[1], args[6])
  if lost_log or (args[7] ~= args[8] and #redis.call('XRANGE', keys[3], args[8], args[8]) == 0) then
    return {'CONFLICT', version, args[5], args[7], h[3] or '', h[4] or '0-0'}
  end
  if dead > 0 and not parse((last_of(keys[4]))) then return broken(keys[4] .. ': ids are exhausted') end
  local ms, n, time = room_in_log(keys[1], records)
  if not ms then return n end
  return nil, version, ms, n, time
end

-- Like chronolet_step_1, but entries get the field `_time` if the log's ids are ahead of the server's clock.
--
-- KEYS  log shard mailbox dead
-- ARGV  token version step_id schema log_cursor new_log_cursor mail_cursor new_mail_cursor
--       record_count dead_count forget_count
--       {type entity subject actor cause data}*        events, as they go into the log
--       {source at type entity data error}*            dead letters; about 10,000 are kept, but all events about them
--       {message}*                                     messages whose attempt counts are deleted
-- OK version at               `at`: the position of the last event that any step of the shard has written
-- CONFLICT version log_cursor mail_cursor step_id at     step_id: that of the last step; if it is the caller's, its
--                             step is already committed. If version and cursors are as expected, what the step consumes
--                             is missing
local function step(keys, args)
  local log, shard, mailbox, dead_letters = keys[1], keys[2], keys[3], keys[4]
  local answer = owned(shard, args[1])
  if answer then return answer end
  local h = redis.call('HMGET', shard, 'token', 'version', 'step', 'at', 'log_cursor', 'mail_cursor', 'schema')
  local records, dead, forget = tonumber(args[9]), tonumber(args[10]), tonumber(args[11])
  local refusal, version, ms, n, time = check_step(keys, args, h, records, dead, forget)
  if refusal then return refusal end
  -- Nothing from here on can fail.
  local at, i = h[4] or '0-0', 12
  for _ = 1, records do
    n = n + 1
    at = spell(ms, n)
    append(log, at, args, i, ms - time >= AHEAD and time or nil)
    i = i + 6
  end
  for _ = 1, dead do
    redis.call('XADD', dead_letters, 'MAXLEN', '~', 10000, '*', 'source', args[i], 'at', args[i + 1], 'type', args[i + 2],
      'entity', args[i + 3], 'data', args[i + 4], 'error', args[i + 5])
    i = i + 6
  end
  for j = i, i + forget - 1 do redis.call('HDEL', shard, 'try:' .. args[j]) end
  local schema = math.max(tonumber(args[4]) or 0, tonumber(h[7] or '0') or 0)
  local counted = string.format('%.0f', version + 1)
  redis.call('HSET', shard, 'version', counted, 'step', args[3], 'at', at, 'log_cursor', args[6],
    'mail_cursor', args[8], 'schema', string.format('%.0f', schema))
  if args[7] ~= args[8] then redis.call('XTRIM', mailbox, 'MINID', args[8]) end
  return {'OK', counted, at}
end

redis.register_function('chronolet_step_2', step)

-- Works on a full server (maxmemory) too: for steps without events and dead letters, and for the keeper's steps.
redis.register_function{function_name = 'chronolet_step_full_2', callback = step, flags = {'allow-oom'}}
