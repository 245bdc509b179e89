#!lua name=chronolet_shards_1
-- Changes to a log's layout (its kinds and their shard counts), and sending commands that fit it (docs/adr/0043).
-- Published functions are never changed or replaced.
--
-- Input, output and rules as in functions.lua. Further first words of a reply:
--   OUTDATED count|mail|log|owner   what it names has changed since the change was prepared; nothing was written
--   MOVED count                     the kind has `count` shards, not as many as the sender assumes; nothing was written
-- Next: layout.py, its only caller.

local MAILBOX_FULL = 10000
local REQUESTS_KEPT = 20000

local function broken(text)
  return {'BROKEN', text}
end

local function wrong(key, want)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then
    return broken(key .. ' is a ' .. found .. ', expected a ' .. want)
  end
end

-- A position as two numbers; nil if it is malformed or has more than 15 digits in a part.
local function parse(id)
  local ms, n = string.match(id or '', '^(%d+)-(%d+)$')
  if not ms or #ms > 15 or #n > 15 then return nil end
  return tonumber(ms), tonumber(n)
end

local function spell(ms, n)
  return string.format('%.0f-%.0f', ms, n)
end

local function later(a, b)
  local a_ms, a_n = parse(a)
  local b_ms, b_n = parse(b)
  return a_ms > b_ms or (a_ms == b_ms and a_n > b_n)
end

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
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

-- The ms for the next entries of the log and the n of the last one, or nil and a reply.
local function room_in_log(log, count)
  local last, added = last_of(log)
  local ms, n = parse(last)
  if not ms then return nil, broken(log .. ': its last id ' .. last .. ' leaves no room for more') end
  ms, n = math.max(ms, now()), math.max(n, added)
  if n + count >= 1e15 or ms >= 1e15 then return nil, broken(log .. ': ids are exhausted after ' .. last) end
  return ms, n
end

local function append(log, id, args, i)
  redis.call('XADD', log, id, 'type', args[i], 'entity', args[i + 1], 'subject', args[i + 2],
    'actor', args[i + 3], 'cause', args[i + 4], 'data', args[i + 5])
end

-- Whether the log still has the entry at a position, or has trimmed it.
local function holds(log, at)
  if at == '0-0' or #redis.call('XRANGE', log, at, at) > 0 then return true end
  local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  if first then return later(first[1], at) end
  return not later(at, (last_of(log)))
end

-- KEYS  meta log {shard mailbox requests snapshot}*     the former shards first, then the new ones that are not former
-- ARGV  kind before after log_cursor decided unclean(0|1) schema read_to format record_count attempt_count move_count
--       {token mail_end}*                               of each former shard. mail_end: the last id in its mailbox, or
--                                                       its mail cursor if that is later
--       {place state}*                                  of each new shard. place: its place in KEYS, counted in shards
--                                                       from 1
--       {type entity subject actor cause data}*         events
--       {message count}*                                attempt counts
--       {former id new}*                                waiting commands: the place of the former shard, the id, the
--                                                       number of the new shard, from 1
-- OK at                 the position of the last event
-- OUTDATED count|mail|log|owner
local function reshard(keys, args)
  local meta, log = keys[1], keys[2]
  local answer = wrong(meta, 'hash') or wrong(log, 'stream')
  if answer then return answer end
  local kind, before, after = args[1], tonumber(args[2]), tonumber(args[3])
  local records, attempts, moves = tonumber(args[10]), tonumber(args[11]), tonumber(args[12])
  local places = (#keys - 2) / 4
  if not before or not after or not records or records < 1 or not attempts or not moves or after < 1
    or places < before or places % 1 ~= 0
    or #args ~= 12 + 2 * before + 2 * after + 6 * records + 2 * attempts + 3 * moves then
    return broken('reshard: wrong number of arguments')
  end
  if not parse(args[4]) or not parse(args[8]) then return broken('reshard: malformed positions') end
  if redis.call('HGET', meta, 'shards:' .. kind) ~= args[2] then return {'OUTDATED', 'count'} end
  if not holds(log, args[8]) then return {'OUTDATED', 'log'} end

  local function hash(place) return keys[4 * place - 1] end
  local function mailbox(place) return keys[4 * place] end
  local function requests(place) return keys[4 * place + 1] end
  local function snapshot(place) return keys[4 * place + 2] end

  local epoch, version, mail = 0, 0, '0-0'
  for place = 1, places do
    answer = wrong(hash(place), 'hash') or wrong(mailbox(place), 'stream') or wrong(requests(place), 'zset')
      or wrong(snapshot(place), 'hash')
    if answer then return answer end
    local h = redis.call('HMGET', hash(place), 'token', 'epoch', 'version', 'mail_cursor')
    local cursor, last = h[4] or '0-0', last_of(mailbox(place))
    local counted, stepped = tonumber(h[2] or '0'), tonumber(h[3] or '0')
    if not counted or counted >= 1e15 or not stepped or stepped >= 1e15 or not parse(cursor) or not parse(last) then
      return broken(hash(place) .. ': epoch, version, cursor or mailbox are unusable')
    end
    if place <= before then
      local token = args[11 + 2 * place]
      if token == '' or h[1] ~= token then return {'OUTDATED', 'owner'} end
      if (later(last, cursor) and last or cursor) ~= args[12 + 2 * place] then return {'OUTDATED', 'mail'} end
    end
    epoch, version = math.max(epoch, counted), math.max(version, stepped)
    if later(cursor, mail) then mail = cursor end
    if later(last, mail) then mail = last end
  end
  local first_state, first_record = 13 + 2 * before, 13 + 2 * before + 2 * after
  local first_attempt = first_record + 6 * records
  local first_move = first_attempt + 2 * attempts
  local found = {}
  for i = 0, moves - 1 do
    local place, id, number = tonumber(args[first_move + 3 * i]), args[first_move + 3 * i + 1],
      tonumber(args[first_move + 3 * i + 2])
    if not place or place < 1 or place > before or not number or number < 1 or number > after then
      return broken('reshard: malformed move')
    end
    local entry = redis.call('XRANGE', mailbox(place), id, id)[1]
    if not entry then return {'OUTDATED', 'mail'} end
    found[#found + 1] = {number, entry[2]}
  end
  local is_new = {}
  for number = 1, after do
    local place = tonumber(args[first_state + 2 * (number - 1)])
    if not place or place < 1 or place > places then return broken('reshard: malformed place') end
    is_new[place] = number
  end
  local mail_ms = math.max(now(), parse(mail) + 1)
  if mail_ms >= 1e15 then return broken('reshard: mailbox ids are exhausted') end
  local ms, n = room_in_log(log, records)
  if not ms then return n end

  -- Nothing from here on can fail.
  local at
  for i = 0, records - 1 do
    n = n + 1
    at = spell(ms, n)
    append(log, at, args, first_record + 6 * i)
  end
  local all_requests = {}
  for place = 1, before do all_requests[place] = requests(place) end
  for place = 1, places do
    -- The set may also be a source of the later unions; it has all requests now, so their result stays the same.
    if is_new[place] then
      all_requests[before + 1], all_requests[before + 2] = 'AGGREGATE', 'MAX'
      redis.call('ZUNIONSTORE', requests(place), before, unpack(all_requests))
    end
  end
  for place = 1, places do
    redis.call('DEL', hash(place), mailbox(place), snapshot(place))
    redis.call('HSET', hash(place), 'token', '', 'epoch', string.format('%.0f', epoch + 1), 'version',
      string.format('%.0f', version + 1), 'step', '', 'at', at, 'log_cursor', args[4], 'mail_cursor', mail,
      'schema', args[7], 'of', args[3], 'decided', args[5], 'unowned_since', string.format('%.0f', now()))
    if not is_new[place] then
      redis.call('DEL', requests(place))
    else
      if args[6] == '1' then
        redis.call('HSET', hash(place), 'unclean_epoch', string.format('%.0f', epoch + 1))
      end
      for i = 0, attempts - 1 do
        redis.call('HSET', hash(place), 'try:' .. args[first_attempt + 2 * i], args[first_attempt + 2 * i + 1])
      end
      local state = args[first_state + 2 * (is_new[place] - 1) + 1]
      if args[8] ~= '0-0' then
        redis.call('HSET', snapshot(place), 'position', args[8], 'format', args[9], 'state', state)
      end
    end
  end
  for i, move in ipairs(found) do
    local place = tonumber(args[first_state + 2 * (move[1] - 1)])
    redis.call('XADD', mailbox(place), spell(mail_ms, i), unpack(move[2]))
  end
  redis.call('HSET', meta, 'shards:' .. kind, args[3])
  redis.call('HDEL', meta, 'reshard:' .. kind, 'reshard_refused:' .. kind)
  return {'OK', at}
end

-- KEYS  meta
-- ARGV  kind count
-- OK 1|0        1: the request is recorded, for the processes that host the kind, and replaces an earlier one; if the
--               kind already has this count, only the earlier request is removed. 0: the log does not have the kind
local function request(keys, args)
  local answer = wrong(keys[1], 'hash')
  if answer then return answer end
  local count = tonumber(args[2] or '')
  if not count or count < 1 then return broken('request: malformed count') end
  local found = redis.call('HGET', keys[1], 'shards:' .. args[1])
  if not found then return {'OK', 0} end
  redis.call('HDEL', keys[1], 'reshard:' .. args[1], 'reshard_refused:' .. args[1])
  if found ~= args[2] then redis.call('HSET', keys[1], 'reshard:' .. args[1], args[2]) end
  return {'OK', 1}
end

-- KEYS  meta
-- ARGV  kind count reason
-- OK       the request is refused if it is still for this count; otherwise nothing changes
local function refuse(keys, args)
  local answer = wrong(keys[1], 'hash')
  if answer then return answer end
  if redis.call('HGET', keys[1], 'reshard:' .. args[1]) == args[2] then
    redis.call('HDEL', keys[1], 'reshard:' .. args[1])
    redis.call('HSET', keys[1], 'reshard_refused:' .. args[1], args[3])
  end
  return {'OK'}
end

-- KEYS  meta log
-- ARGV  kind count type entity subject actor cause data
-- OK count      the kind's shard count: the given one, or the existing one if the log already has the kind
local function add_kind(keys, args)
  local meta, log = keys[1], keys[2]
  local answer = wrong(meta, 'hash') or wrong(log, 'stream')
  if answer then return answer end
  if #args ~= 8 or not tonumber(args[2]) or args[1] == '' then return broken('add_kind: malformed arguments') end
  if redis.call('EXISTS', log) == 0 or not redis.call('HGET', meta, 'run') then return broken(log .. ' is gone') end
  local found = redis.call('HGET', meta, 'shards:' .. args[1])
  if found then return {'OK', found} end
  local ms, n = room_in_log(log, 1)
  if not ms then return n end
  append(log, spell(ms, n + 1), args, 3)
  redis.call('HSET', meta, 'shards:' .. args[1], args[2])
  return {'OK', args[2]}
end

-- KEYS  mailbox shard requests meta
-- ARGV  type entity request data kind count
--       count: the number of shards by which the sender chose the mailbox
-- OK | DUPLICATE | BUSY | MOVED count      MOVED: the present number of shards, 0 for a kind that the log does not have
-- Otherwise like chronolet_send_1.
local function send(keys, args)
  local mailbox, shard, requests, meta = keys[1], keys[2], keys[3], keys[4]
  local answer = wrong(mailbox, 'stream') or wrong(shard, 'hash') or wrong(requests, 'zset') or wrong(meta, 'hash')
  if answer then return answer end
  if #args ~= 6 or args[3] == '' then return broken('send: type, entity, request, data, kind and count are needed') end
  local count = redis.call('HGET', meta, 'shards:' .. args[5])
  if count ~= args[6] then return {'MOVED', count or '0'} end
  if redis.call('ZSCORE', requests, args[3]) then return {'DUPLICATE'} end
  local cursor, last = redis.call('HGET', shard, 'mail_cursor') or '0-0', last_of(mailbox)
  if not parse(cursor) or not parse(last) then return broken(shard .. ': mail_cursor or mailbox ids are unusable') end
  local waiting = redis.call('XLEN', mailbox)
  if waiting > 0 then waiting = waiting - #redis.call('XRANGE', mailbox, cursor, cursor) end
  if waiting >= MAILBOX_FULL then return {'BUSY'} end
  if later(cursor, last) then last = cursor end
  local ms, n = parse(last)
  local time = now()
  if time > ms then ms, n = time, 0 else n = n + 1 end
  if n >= 1e15 then return broken(mailbox .. ': ids are exhausted') end
  redis.call('XADD', mailbox, spell(ms, n), 'type', args[1], 'entity', args[2], 'request', args[3], 'data', args[4])
  redis.call('ZADD', requests, ms, args[3])
  redis.call('ZREMRANGEBYRANK', requests, 0, -REQUESTS_KEPT - 1)
  return {'OK'}
end

redis.register_function('chronolet_reshard_1', reshard)
redis.register_function('chronolet_add_kind_1', add_kind)
redis.register_function('chronolet_send_2', send)

-- Functions registered here also work on a full server (maxmemory): they need almost no memory.
local function register_for_full(name, callback)
  redis.register_function{function_name = name, callback = callback, flags = {'allow-oom'}}
end

register_for_full('chronolet_request_shards_1', request)
register_for_full('chronolet_refuse_shards_1', refuse)
