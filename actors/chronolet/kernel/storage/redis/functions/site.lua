#!lua name=chronolet_site_1
-- The record of a node's site: the machine and the engine on which the node lives (docs/adr/0035).
--
-- Input, output and rules as in functions.lua. The code that counts positions is a copy of the code there, because a
-- library cannot call another one.
-- Next: sites.py, its only caller.

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

-- KEYS  meta log shard*
-- ARGV  run expected site type entity subject actor cause data token*
--       expected: the site recorded so far, empty for none; token: the token that each shard must still have
-- OK site               the site is recorded in meta, and the event is in the log; also if it was recorded already, so
--                       that a repeat after a lost reply records nothing twice
-- CONFLICT site run     the recorded site is not the expected one, a shard has another token, or the log belongs to
--                       another run
local function record_site(keys, args)
  local meta, log = keys[1], keys[2]
  if #args ~= 9 + #keys - 2 then return broken('record_site: wrong number of arguments') end
  local answer = wrong(meta, 'hash') or wrong(log, 'stream')
  if answer then return answer end
  for i = 3, #keys do
    answer = wrong(keys[i], 'hash')
    if answer then return answer end
  end
  local run, site = redis.call('HGET', meta, 'run') or '', redis.call('HGET', meta, 'site') or ''
  if run == '' or run ~= args[1] then return {'CONFLICT', site, run} end
  if site == args[3] then return {'OK', site} end
  if site ~= args[2] then return {'CONFLICT', site, run} end
  for i = 3, #keys do
    if (redis.call('HGET', keys[i], 'token') or '') ~= args[9 + i - 2] then return {'CONFLICT', site, run} end
  end
  if redis.call('EXISTS', log) == 0 then return broken(log .. ' is gone') end
  local ms, n = next_in_log(log)
  if not ms then return n end
  -- Nothing from here on can fail.
  redis.call('XADD', log, string.format('%.0f-%.0f', ms, n), 'type', args[4], 'entity', args[5], 'subject', args[6],
    'actor', args[7], 'cause', args[8], 'data', args[9])
  redis.call('HSET', meta, 'site', args[3])
  return {'OK', args[3]}
end

redis.register_function('chronolet_record_site_1', record_site)
