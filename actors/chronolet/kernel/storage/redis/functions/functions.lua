#!lua name=chronolet_1
-- The node's writes, as one library of versioned functions (DESIGN 3.3). Published functions are never changed or
-- replaced: what must differ becomes library chronolet_2 with names of its own.
--
-- Comes in: keys of one node (one hash tag), arguments as text. Goes out: a list whose first word says how it went:
--   OK ...            done
--   FENCED token      another owner holds the shard (empty: nobody); nothing was written
--   CONFLICT ...      the shard is elsewhere than the caller thinks; nothing was written
--   BROKEN text       a key is of the wrong type, ids are exhausted, arguments are malformed; nothing was written
-- Next: redis_store.py, its only caller.
--
-- Two rules for every function here. A Lua error rolls nothing back, so all checks come before the first write and
-- nothing after it may fail. Ids are text; the numbers in them have at most 15 digits and are exact as doubles.
--
-- Loads on Redis >= 7.0 and Valkey: globals are closed while a library loads, so `unpack` and the like are only
-- touched inside of functions.

local MAILBOX_FULL = 10000
local REQUESTS_KEPT = 20000
local TRIM_AT_ONCE = 10000
local SHOW_AT_MOST = 1000

-- ---------------------------------------------------------------------------------------------------- positions --

-- '<ms>-<n>' as two numbers; nil for what is no position or too large to be counted on.
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

-- ------------------------------------------------------------------------------------------------------- checks --

local function broken(text)
  return {'BROKEN', text}
end

-- An answer if the key exists and is something else; nil if all is well.
local function wrong(key, want)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then
    return broken(key .. ' is a ' .. found .. ', expected a ' .. want)
  end
end

-- The last id a stream has given ('0-0' if it does not exist) and how many entries it ever got.
local function last_of(key)
  if redis.call('EXISTS', key) == 0 then return '0-0', 0 end
  local info, last, added = redis.call('XINFO', 'STREAM', key), '0-0', 0
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then last = info[i + 1] end
    if info[i] == 'entries-added' then added = info[i + 1] end
  end
  return last, added
end

-- The ms for the next entries of the log and the n of the last one, or nil and an answer. n is the log's own count.
-- An entry that somebody else put in with an id of his own takes one number, like any other: so n is the larger of
-- the last id's n and the number of entries ever added, and ms steps on where that n would not be later.
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
  return ms, n
end

-- The id for the next entry of a stream in which n only tells entries of one millisecond apart; nil if there is none.
-- `floor` is a position it must be later than, whatever the clock says (a cursor).
local function next_id(key, floor)
  local last = last_of(key)
  local ms, n = parse(last)
  if not ms then return nil end
  if later(floor, last) then ms, n = parse(floor) end
  local time = now()
  if time > ms then return spell(time, 0) end
  if n + 1 >= 1e15 then return nil end
  return spell(ms, n + 1)
end

-- Whether the log still has the entry at a position that was read from it, or has trimmed it since. After the loss of a
-- tail it has neither: whoever read it there must not act on it.
local function holds(log, at)
  if #redis.call('XRANGE', log, at, at) > 0 then return true end
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if first then return later(first[1], at) end
  return not later(at, (last_of(log)))
end

-- nil if the token owns the shard, else the answer.
local function owned(shard, token)
  local answer = wrong(shard, 'hash')
  if answer then return answer end
  local held = redis.call('HGET', shard, 'token') or ''
  if token == nil or token == '' or held ~= token then return {'FENCED', held} end
end

local function append(log, id, args, i)
  redis.call('XADD', log, id, 'type', args[i], 'entity', args[i + 1], 'subject', args[i + 2],
    'actor', args[i + 3], 'cause', args[i + 4], 'data', args[i + 5])
end

-- ------------------------------------------------------------------------------------------------------- begin --

-- KEYS  meta log
-- ARGV  run kind_count {kind shards}* type entity subject actor cause data
-- OK run {kind shards}*   of the log that is there now; it was begun by this call if the run is the one given.
local function begin(keys, args)
  local meta, log = keys[1], keys[2]
  local answer = wrong(meta, 'hash') or wrong(log, 'stream')
  if answer then return answer end
  local kinds = tonumber(args[2])
  if not kinds or #args ~= 2 + 2 * kinds + 6 then return broken('begin: wrong number of arguments') end
  local last = last_of(log)
  local run = redis.call('HGET', meta, 'run')
  if last == '0-0' and run then
    return broken(log .. ' is gone, but ' .. meta .. ' still tells of run ' .. run)
  end
  if last ~= '0-0' and not run then
    return broken(log .. ' has entries, but ' .. meta .. ' does not tell the run')
  end
  if not run then
    local ms, n = room_in_log(log, 1)
    if not ms then return n end
    run = args[1]
    append(log, spell(ms, 1), args, 3 + 2 * kinds)
    redis.call('HSET', meta, 'run', run, 'archived', '0-0', 'trimmed', '0-0')
    for i = 3, 2 + 2 * kinds, 2 do redis.call('HSET', meta, 'shards:' .. args[i], args[i + 1]) end
  end
  local reply, fields = {'OK', run}, redis.call('HGETALL', meta)
  for i = 1, #fields, 2 do
    local kind = string.match(fields[i], '^shards:(.+)$')
    if kind then
      reply[#reply + 1] = kind
      reply[#reply + 1] = fields[i + 1]
    end
  end
  return reply
end

-- --------------------------------------------------------------------------------------------------- ownership --

-- KEYS  alive:<process> meta
-- ARGV  process info ttl_milliseconds
-- OK    The lease holds for another time-to-live; meta lists the process until it retires or is taken over from.
local function renew(keys, args)
  local answer = wrong(keys[1], 'string') or wrong(keys[2], 'hash')
  if answer then return answer end
  local ttl = tonumber(args[3])
  if not ttl or ttl < 1 then return broken('renew: the time-to-live must be at least 1 ms') end
  redis.call('SET', keys[1], args[2], 'PX', string.format('%.0f', ttl))
  redis.call('HSETNX', keys[2], 'process:' .. args[1], '')
  return {'OK'}
end

-- KEYS  shard alive:<owner in expected token> meta
-- ARGV  expected_token process schema proven_dead(0|1)
-- OK {field value}*                                   the shard's hash, with its new token
-- NOTFREE alive|changed|newer_schema token
-- The same call again (a lost answer) finds its own token there and gets the same answer, as long as it still holds.
local function acquire(keys, args)
  local shard, alive, meta = keys[1], keys[2], keys[3]
  local answer = wrong(shard, 'hash') or wrong(meta, 'hash')
  if answer then return answer end
  local schema = tonumber(args[3])
  if not schema or not args[4] then return broken('acquire: malformed arguments') end
  local h = redis.call('HMGET', shard, 'token', 'epoch', 'schema', 'acquired_from')
  local token, epoch = h[1] or '', tonumber(h[2] or '0')
  if not epoch or epoch >= 1e15 then return broken(shard .. ': epoch is ' .. h[2] .. ', expected a small number') end
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
    if args[4] ~= '1' and redis.call('EXISTS', alive) == 1 then return {'NOTFREE', 'alive', token} end
    redis.call('DEL', alive)
    redis.call('HDEL', meta, 'process:' .. owner)
  end
  epoch = string.format('%.0f', epoch + 1)
  redis.call('HSET', shard, 'token', epoch .. ':' .. args[2], 'epoch', epoch, 'acquired_from', token)
  redis.call('HDEL', shard, 'unowned_since')
  answer = redis.call('HGETALL', shard)
  table.insert(answer, 1, 'OK')
  return answer
end

-- KEYS  alive:<process> meta shard*
-- ARGV  process token*        one token for each shard
-- OK    Shards that still have that token are free at once (the epoch stays), and the lease is dropped.
local function retire(keys, args)
  if #args ~= #keys - 1 then return broken('retire: one token for each shard is needed') end
  local answer = wrong(keys[2], 'hash')
  if answer then return answer end
  for i = 3, #keys do
    answer = wrong(keys[i], 'hash')
    if answer then return answer end
  end
  local time = string.format('%.0f', now())
  for i = 3, #keys do
    if args[i - 1] ~= '' and redis.call('HGET', keys[i], 'token') == args[i - 1] then
      redis.call('HSET', keys[i], 'token', '', 'unowned_since', time)
    end
  end
  redis.call('DEL', keys[1])
  redis.call('HDEL', keys[2], 'process:' .. args[1])
  return {'OK'}
end

-- KEYS  shard alive:<owner in token>
-- ARGV  token
-- OK milliseconds        for how long the shard is known to have no living owner; the first call starts that clock
-- CONFLICT token         it has a living owner, or another token than the caller thinks: the clock is off
local function unowned(keys, args)
  local answer = wrong(keys[1], 'hash')
  if answer then return answer end
  local token = redis.call('HGET', keys[1], 'token') or ''
  if token ~= args[1] then return {'CONFLICT', token} end
  if token ~= '' and redis.call('EXISTS', keys[2]) == 1 then
    redis.call('HDEL', keys[1], 'unowned_since')
    return {'CONFLICT', token}
  end
  local time = now()
  redis.call('HSETNX', keys[1], 'unowned_since', string.format('%.0f', time))
  local since = tonumber(redis.call('HGET', keys[1], 'unowned_since')) or time
  return {'OK', string.format('%.0f', math.max(0, time - since))}
end

-- -------------------------------------------------------------------------------------------------------- step --

-- Everything a step must hold before it writes. An answer, or nil with version, ms and n to go on from.
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
  -- What is consumed must be there: the server may have lost it after the host read it. A mailbox keeps each entry until
  -- this very step.
  local lost_log = args[5] ~= args[6] and not holds(keys[1], args[6])
  if lost_log or (args[7] ~= args[8] and #redis.call('XRANGE', keys[3], args[8], args[8]) == 0) then
    return {'CONFLICT', version, args[5], args[7], h[3] or '', h[4] or '0-0'}
  end
  if dead > 0 and not parse((last_of(keys[4]))) then return broken(keys[4] .. ': ids are exhausted') end
  local ms, n = room_in_log(keys[1], records)
  if not ms then return n end
  return nil, version, ms, n
end

-- KEYS  log shard mailbox dead
-- ARGV  token version step_id schema log_cursor new_log_cursor mail_cursor new_mail_cursor
--       record_count dead_count forget_count
--       {type entity subject actor cause data}*        events, as they go into the log
--       {source at type entity data error}*            dead letters; about 10,000 are kept, their events stay
--       {message}*                                     whose tries are forgotten
-- OK version at               `at`: the position of the last event that the shard's steps ever wrote
-- CONFLICT version log_cursor mail_cursor step_id at     step_id is the last step's: one's own means done before;
--                             with version and cursors as expected: what the step consumes is not there (any more)
local function step(keys, args)
  local log, shard, mailbox, dead_letters = keys[1], keys[2], keys[3], keys[4]
  local answer = owned(shard, args[1])
  if answer then return answer end
  local h = redis.call('HMGET', shard, 'token', 'version', 'step', 'at', 'log_cursor', 'mail_cursor', 'schema')
  local records, dead, forget = tonumber(args[9]), tonumber(args[10]), tonumber(args[11])
  local refusal, version, ms, n = check_step(keys, args, h, records, dead, forget)
  if refusal then return refusal end
  -- Nothing from here on can fail.
  local at, i = h[4] or '0-0', 12
  for _ = 1, records do
    n = n + 1
    at = spell(ms, n)
    append(log, at, args, i)
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

-- KEYS  shard
-- ARGV  token message count
-- OK        remembered that this try is the message's `count`th; the same call again changes nothing
local function try(keys, args)
  local answer = owned(keys[1], args[1])
  if answer then return answer end
  local count = tonumber(args[3] or '')
  if not count or count < 1 or count > 1e9 then return broken('try: malformed arguments') end
  redis.call('HSET', keys[1], 'try:' .. args[2], string.format('%.0f', count))
  return {'OK'}
end

-- -------------------------------------------------------------------------------------------------------- send --

-- KEYS  mailbox shard requests
-- ARGV  type entity request data
-- OK | DUPLICATE | BUSY
-- `requests` is a sorted set of the newest request ids, waiting ones and those already consumed. The entry at the
-- mailbox cursor is consumed: it stays as the last one and does not count as waiting.
local function send(keys, args)
  local mailbox, shard, requests = keys[1], keys[2], keys[3]
  local answer = wrong(mailbox, 'stream') or wrong(shard, 'hash') or wrong(requests, 'zset')
  if answer then return answer end
  if #args ~= 4 or args[3] == '' then return broken('send: type, entity, request and data are needed') end
  if redis.call('ZSCORE', requests, args[3]) then return {'DUPLICATE'} end
  local cursor = redis.call('HGET', shard, 'mail_cursor') or '0-0'
  if not parse(cursor) then return broken(shard .. ': mail_cursor is ' .. cursor .. ', expected <ms>-<n>') end
  local waiting = redis.call('XLEN', mailbox)
  if waiting > 0 then waiting = waiting - #redis.call('XRANGE', mailbox, cursor, cursor) end
  if waiting >= MAILBOX_FULL then return {'BUSY'} end
  local id = next_id(mailbox, cursor)
  if not id then return broken(mailbox .. ': ids are exhausted') end
  redis.call('XADD', mailbox, id, 'type', args[1], 'entity', args[2], 'request', args[3], 'data', args[4])
  redis.call('ZADD', requests, (parse(id)), args[3])
  redis.call('ZREMRANGEBYRANK', requests, 0, -REQUESTS_KEPT - 1)
  return {'OK'}
end

-- ------------------------------------------------------------------------------------- snapshot, archive, trim --

-- KEYS  snapshot shard log
-- ARGV  token position format state
-- OK | STALE position     kept only if its position is later, or of another format and not earlier; and in the log
local function snapshot(keys, args)
  local answer = owned(keys[2], args[1]) or wrong(keys[1], 'hash') or wrong(keys[3], 'stream')
  if answer then return answer end
  if #args ~= 4 or not parse(args[2]) then return broken('snapshot: malformed arguments') end
  local h = redis.call('HMGET', keys[1], 'position', 'format')
  if h[1] and parse(h[1]) then
    local grows = later(args[2], h[1]) or (args[2] == h[1] and args[3] ~= h[2])
    if not grows then return {'STALE', h[1]} end
  end
  if not holds(keys[3], args[2]) then return {'STALE', h[1] or '0-0'} end
  redis.call('HSET', keys[1], 'position', args[2], 'format', args[3], 'state', args[4])
  return {'OK'}
end

-- KEYS  meta keeper_shard
-- ARGV  token position
-- OK archived      never goes back
local function archived(keys, args)
  local answer = owned(keys[2], args[1]) or wrong(keys[1], 'hash')
  if answer then return answer end
  if not parse(args[2]) then return broken('archived: ' .. (args[2] or '') .. ' is no position') end
  local before = redis.call('HGET', keys[1], 'archived') or '0-0'
  if parse(before) and not later(args[2], before) then return {'OK', before} end
  redis.call('HSET', keys[1], 'archived', args[2])
  return {'OK', args[2]}
end

-- The position up to which the log may go: the lowest of what is asked, archived, and each shard's cursor and snapshot.
local function trim_limit(keys, args)
  local limit = args[2]
  local function lower(position)
    position = position or '0-0'
    if not parse(position) then position = '0-0' end
    if later(limit, position) then limit = position end
  end
  lower(redis.call('HGET', keys[1], 'archived'))
  for i = 4, #keys, 2 do
    lower(redis.call('HGET', keys[i], 'log_cursor'))
    lower(redis.call('HGET', keys[i + 1], 'position'))
  end
  return limit
end

-- KEYS  meta log keeper_shard {shard snapshot}*      the shards that hold entries back
-- ARGV  token position
-- OK removed trimmed      at most 10,000 at a time, whole nodes of the stream only: call until none is removed
local function trim(keys, args)
  local meta, log = keys[1], keys[2]
  local answer = owned(keys[3], args[1]) or wrong(meta, 'hash') or wrong(log, 'stream')
  if answer then return answer end
  for i = 4, #keys do
    answer = wrong(keys[i], 'hash')
    if answer then return answer end
  end
  if not parse(args[2]) or #keys % 2 == 0 then return broken('trim: malformed arguments') end
  local ms, n = parse(trim_limit(keys, args))
  local removed = redis.call('XTRIM', log, 'MINID', '~', spell(ms, n + 1), 'LIMIT', TRIM_AT_ONCE)
  local trimmed = redis.call('HGET', meta, 'trimmed') or '0-0'
  if removed > 0 then
    local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
    local first_ms, first_n = parse(first and first[1])
    trimmed = spell(ms, n)
    -- The position just before the first entry that is left: not before the last one that went.
    if first_ms and first_n > 0 then trimmed = spell(first_ms, first_n - 1) end
    redis.call('HSET', meta, 'trimmed', trimmed)
  end
  return {'OK', removed, trimmed}
end

-- -------------------------------------------------------------------------------------------------------- show --

-- cjson puts a backslash before each slash; JSON needs none, and people read better without.
local function json(value)
  return (string.gsub(cjson.encode(value), '\\/', '/'))
end

local function json_of(name, value)
  if name ~= 'data' then return json(value) end
  local decoded, text = pcall(function()
    assert(value ~= '', 'there is nothing')
    return json(cmsgpack.unpack(value))
  end)
  if decoded then return text end
  return json({undecodable = tostring(text)})
end

-- KEYS  a stream: log, mailbox or dead letters
-- ARGV  [from [to [count]]]      as XRANGE takes them; everything and 10 without; at most 1,000
-- One line of JSON for each entry, `data` decoded. What the decoding loses: an empty list or map prints {}, floats
-- have 14 digits, null fields vanish.
local function show(keys, args)
  local answer = wrong(keys[1], 'stream')
  if answer then return redis.error_reply(answer[2]) end
  local count = math.max(0, math.min(tonumber(args[3] or '10') or 10, SHOW_AT_MOST))
  local found = redis.pcall('XRANGE', keys[1], args[1] or '-', args[2] or '+', 'COUNT', count)
  if found.err then return found end
  local lines = {}
  for i, entry in ipairs(found) do
    local parts, fields = {'"at":' .. json(entry[1])}, entry[2]
    for j = 1, #fields, 2 do
      parts[#parts + 1] = json(fields[j]) .. ':' .. json_of(fields[j], fields[j + 1])
    end
    lines[i] = '{' .. table.concat(parts, ',') .. '}'
  end
  return lines
end

-- ------------------------------------------------------------------------------------------------------- names --

redis.register_function('chronolet_begin_1', begin)
redis.register_function('chronolet_step_1', step)
redis.register_function('chronolet_send_1', send)

-- On a full server (maxmemory) these still work: they free memory, or take next to none and lead to what frees it.
-- `step_full` is the same step for calls without events and for the keeper's own.
local function register_for_full(name, callback)
  redis.register_function{function_name = name, callback = callback, flags = {'allow-oom'}}
end

register_for_full('chronolet_step_full_1', step)
register_for_full('chronolet_renew_1', renew)
register_for_full('chronolet_acquire_1', acquire)
register_for_full('chronolet_retire_1', retire)
register_for_full('chronolet_unowned_1', unowned)
register_for_full('chronolet_try_1', try)
register_for_full('chronolet_snapshot_1', snapshot)
register_for_full('chronolet_archived_1', archived)
register_for_full('chronolet_trim_1', trim)

redis.register_function{function_name = 'chronolet_show_1', callback = show, flags = {'no-writes'}}
