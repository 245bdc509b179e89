-- Streams: entries as lines, bounded reads, the summary. Next: events.lua.

local READ_AT_MOST = 10000
local CHUNK = 250

local function check_type(key, want)
  if not key then refuse('no key was given, expected one: FCALL_RO function 1 key ...') end
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then refuse(key .. ' is a ' .. found .. ', expected a ' .. want) end
  return found ~= 'none'
end

-- The fields of XINFO STREAM by name; none if the stream does not exist.
local function info_of(key)
  local found = {}
  if redis.call('EXISTS', key) == 0 then return found end
  local flat = redis.call('XINFO', 'STREAM', key)
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end

-- The fields of an entry by name.
local function fields_of(entry)
  local found, flat = {}, entry[2]
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end

-- An entry as a line, with `more`, a list {name, value ...}, after its fields. A field whose name is already used gets
-- a `_` after its name.
local function line_of(entry, more)
  local line, used = {'position', entry[1], 'time', time_of(entry[1])}, {position = true, time = true}
  local flat, count = entry[2], 2
  for i = 1, #flat, 2 do
    local name, value = flat[i], flat[i + 1]
    while used[name] do name = name .. '_' end
    used[name] = true
    count = count + 1
    line[2 * count - 1], line[2 * count] = name, value
    if name == 'data' then
      local data = unpacked(value)
      line[2 * count] = data
      -- An entry whose position is ahead of the clock has its time in its data (docs/adr/0042).
      if type(data) == 'table' and type(data._time) == 'number' then line[4] = time_text(data._time) end
    end
  end
  for i = 1, #(more or {}), 2 do
    count = count + 1
    line[2 * count - 1], line[2 * count] = more[i], more[i + 1]
  end
  local done, text = pcall(object, count, line)
  if done then return text end
  for i = 1, count do
    if line[2 * i - 1] == 'data' then line[2 * i] = undecodable(text) end
  end
  return object(count, line)
end

-- Calls `each` with the entries from `o.FROM` to `o.TO`, oldest first, or newest first if `backward`. Ends early when
-- `each` returns false, which leaves that entry unread, or after `most` entries. Returns the cursor, whether it ended
-- early, and the number of entries read.
local function scan(key, o, backward, most, each)
  local cursor, read = backward and (o.TO or '+') or (o.FROM or '-'), 0
  while read < most do
    local count, found = math.min(CHUNK, most - read), nil
    if backward then
      found = redis.call('XREVRANGE', key, cursor, o.FROM or '-', 'COUNT', count)
    else
      found = redis.call('XRANGE', key, cursor, o.TO or '+', 'COUNT', count)
    end
    for _, entry in ipairs(found) do
      if not each(entry) then return cursor, true, read end
      read = read + 1
      cursor = '(' .. entry[1]
    end
    if #found < count then return cursor, false, read end
  end
  return cursor, true, read
end

-- The last line of a reply: where to continue, and where the stream begins.
local function summary(key, lines, cursor, ended, read)
  local info = info_of(key)
  local begins, ends = (info['first-entry'] or {})[1], (info['last-entry'] or {})[1]
  local length, added = info.length or 0, tonumber(info['entries-added']) or 0
  lines[#lines + 1] = object(11, {
    'next', cursor, 'more', ended, 'read', read, 'lines', #lines, 'exists', info.length ~= nil, 'entries', length,
    'begins', begins, 'begins_time', time_of(begins), 'ends', ends, 'ends_time', time_of(ends),
    'trimmed', math.max(0, added - length),
  })
  return lines
end
