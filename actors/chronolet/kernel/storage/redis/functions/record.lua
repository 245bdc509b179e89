#!lua name=chronolet_record_1
-- Appends one event of a process to the log (docs/adr/0044). Published functions are never changed or replaced.
--
-- Input, output and rules as in functions.lua. The code that counts positions is a copy of the code there, because a
-- library cannot call another one.
-- Next: store.py, its only caller.

local function broken(text)
  return {'BROKEN', text}
end

local function wrong(key, want)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then
    return broken(key .. ' is a ' .. found .. ', expected a ' .. want)
  end
end

-- The ms and n of the next entry of the log, or nil and a reply. As in functions.lua: n counts the log's entries, an
-- entry by another writer uses up one number, and ms never goes back.
local function next_in_log(log)
  local info, last, added = redis.call('XINFO', 'STREAM', log), '0-0', 0
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then last = info[i + 1] end
    if info[i] == 'entries-added' then added = info[i + 1] end
  end
  local ms_text, n_text = string.match(last, '^(%d+)-(%d+)$')
  if not ms_text or #ms_text > 15 or #n_text > 15 then
    return nil, broken(log .. ': its last id ' .. last .. ' leaves no room for more (15 digits at most)')
  end
  local ms, n = tonumber(ms_text), math.max(tonumber(n_text), added)
  local time = redis.call('TIME')
  ms = math.max(ms, tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
  if n + 1 >= 1e15 or ms >= 1e15 then return nil, broken(log .. ': ids are exhausted after ' .. last) end
  return ms, n + 1
end

-- KEYS  meta log
-- ARGV  run type entity subject actor cause data
-- OK at       the event's position
-- RUN run     the log belongs to another run, and nothing was written
local function record(keys, args)
  local meta, log = keys[1], keys[2]
  if #args ~= 7 then return broken('record: wrong number of arguments') end
  local answer = wrong(meta, 'hash') or wrong(log, 'stream')
  if answer then return answer end
  local run = redis.call('HGET', meta, 'run') or ''
  if run == '' or run ~= args[1] then return {'RUN', run} end
  if redis.call('EXISTS', log) == 0 then return broken(log .. ' is gone') end
  local ms, n = next_in_log(log)
  if not ms then return n end
  local at = string.format('%.0f-%.0f', ms, n)
  redis.call('XADD', log, at, 'type', args[2], 'entity', args[3], 'subject', args[4], 'actor', args[5],
    'cause', args[6], 'data', args[7])
  return {'OK', at}
end

redis.register_function('chronolet_record_1', record)
