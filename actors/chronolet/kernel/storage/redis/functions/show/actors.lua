-- chronolet_actors_1: who owns each shard, and what waits for it. Then registers all functions of the library.

local SHARDS_AT_MOST = 1000
local FAR_BEHIND = 10000 -- a host commits its cursor after 5,000 entries or a minute

-- The names of all shards, sorted by kind and number, from the counts in the node's hash.
local function shards_of(meta)
  local names, flat = {}, redis.call('HGETALL', meta)
  for i = 1, #flat, 2 do
    local kind = string.match(flat[i], '^shards:(.+)$')
    local count = kind and tonumber(flat[i + 1])
    if kind and (not count or count < 1 or count > SHARDS_AT_MOST) then
      refuse(meta .. ': ' .. flat[i] .. ' is ' .. quoted(flat[i + 1]) .. ', expected 1 to ' .. SHARDS_AT_MOST)
    end
    if count == 1 then names[#names + 1] = kind end
    for index = 0, (count or 1) > 1 and count - 1 or -1 do
      names[#names + 1] = string.format('%s/%d', kind, index)
    end
  end
  table.sort(names, function(a, b)
    local a_kind, b_kind = string.match(a, '^[^/]*'), string.match(b, '^[^/]*')
    if a_kind ~= b_kind then return a_kind < b_kind end
    return #a < #b or (#a == #b and a < b)
  end)
  return names
end

-- Milliseconds since 1970 by the server's clock, or nil for a user that may not call TIME.
local function now()
  local time = redis.pcall('TIME')
  if time.err then return nil end
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function since(time, milliseconds)
  return time and milliseconds and math.max(0, time - milliseconds) or nil
end

-- The number of commands that wait in a mailbox, and the time of the oldest one in milliseconds. The entry at the
-- cursor has already been consumed.
local function waiting_in(mailbox, cursor)
  if redis.call('TYPE', mailbox).ok ~= 'stream' then return 0, nil end
  local oldest = redis.call('XRANGE', mailbox, '(' .. cursor, '+', 'COUNT', 1)[1]
  if not oldest then return 0, nil end
  return redis.call('XLEN', mailbox) - #redis.call('XRANGE', mailbox, cursor, cursor), (parse(oldest[1]))
end

-- One shard as a line, and whether it has a problem.
local function actor(prefix, name, last, time, patience)
  local shard, problems = prefix .. 'shard:' .. name, {}
  local kind = redis.call('TYPE', shard).ok
  if kind ~= 'none' and kind ~= 'hash' then
    return object(2, {'shard', name, 'problems', {shard .. ' is a ' .. kind .. ', expected a hash'}}), true
  end
  local h, tried, flat = {}, 0, redis.call('HGETALL', shard)
  for i = 1, #flat, 2 do
    h[flat[i]] = flat[i + 1]
    if string.find(flat[i], '^try:') then tried = math.max(tried, tonumber(flat[i + 1]) or 0) end
  end
  local owner = string.match(h.token or '', '^%d+:(.+)$')
  local alive = owner and redis.pcall('GET', prefix .. 'alive:' .. owner)
  local lease = owner and redis.call('PTTL', prefix .. 'alive:' .. owner)
  if type(alive) ~= 'string' then alive = nil end
  if not owner then problems[1] = 'no process owns it' end
  if owner and not alive then problems[1] = 'its owner ' .. owner .. ' does not renew its lease' end
  local _, cursor_n = parse(h.log_cursor or '0-0')
  local _, last_n = parse(last)
  local lag = cursor_n and last_n and math.max(0, last_n - cursor_n) or nil
  if owner and lag and lag > FAR_BEHIND then
    problems[#problems + 1] = 'it has not consumed ' .. number(lag) .. ' entries of the log'
  end
  local mail_cursor = parse(h.mail_cursor) and h.mail_cursor or '0-0'
  local waiting, oldest = waiting_in(prefix .. 'mailbox:' .. name, mail_cursor)
  local waited = since(time, oldest)
  if waiting > 0 and (not waited or waited >= patience) then
    local age = waited and ', the oldest for ' .. number(waited) .. ' ms' or ''
    problems[#problems + 1] = 'commands wait: ' .. number(waiting) .. age
  end
  if tried > 1 then problems[#problems + 1] = 'a message or effect is at attempt ' .. number(tried) end
  return object(16, {
    'shard', name, 'owner', owner, 'alive', alive ~= nil, 'lease_milliseconds', alive and lease,
    'renewal', owner and tonumber(redis.call('HGET', prefix .. 'meta', 'process:' .. owner)), 'info', alive,
    'epoch', tonumber(h.epoch), 'version', tonumber(h.version),
    'at', h.at, 'age_milliseconds', since(time, (parse(h.at))),
    'log_cursor', h.log_cursor, 'lag_at_most', lag,
    'mail_cursor', h.mail_cursor, 'waiting', waiting, 'waiting_milliseconds', waited,
    'problems', #problems > 0 and problems or NONE,
  }), #problems > 0
end

-- KEYS  meta
-- ARGV  [SHARD p]* [STUCK seconds] [AFTER shard] [READ n]
--       SHARD: a pattern for names such as pod/3. AFTER: begin after this shard. READ: shards examined, 100 (1 to 1000)
--       STUCK: only shards with a problem; a waiting command is a problem after this many seconds, by default 10
-- Lines, one for each shard. The names of the keys of shards, mailboxes and processes are built as in keys.py.
--       shard, owner, epoch, version
--       alive, lease_milliseconds               whether the key of the owner exists; the time until it expires
--       renewal, info                           the number of the owner's last renewal; its kinds and address
--       at, age_milliseconds                    the position of the shard's last event; the time since then
--       log_cursor, lag_at_most                 the number of log entries after the cursor, for this shard or others
--       mail_cursor, waiting, waiting_milliseconds     commands after the cursor; how long the oldest has waited
--       problems                                texts
-- Ages and the summary's `time` are null for a user that may not call TIME.
local function actors(keys, args)
  local meta = keys[1]
  local o = options(args, 1, {SHARD = 'list', STUCK = {0, 1e9}, AFTER = 'text', READ = {1, SHARDS_AT_MOST}})
  local exists = check_type(meta, 'hash')
  local prefix = string.match(meta, '^(.*:)meta$')
  if not prefix then refuse('the key is ' .. quoted(meta) .. ', expected a name such as chronolet:{node-1}:meta') end
  local names, lines, read, stuck, ended = shards_of(meta), {}, 0, 0, false
  local cursor, first = o.AFTER, 1
  if o.AFTER then
    while names[first] and names[first] ~= o.AFTER do first = first + 1 end
    if not names[first] then refuse('AFTER is ' .. quoted(o.AFTER) .. ', expected the name of a shard') end
    first = first + 1
  end
  check_type(prefix .. 'log', 'stream')
  local info, time = info_of(prefix .. 'log'), now()
  local last = info['last-generated-id'] or '0-0'
  for i = first, #names do
    if read == (o.READ or 100) then
      ended = true
      break
    end
    read, cursor = read + 1, names[i]
    if chosen(o.SHARD, names[i]) then
      local line, has_problem = actor(prefix, names[i], last, time, 1000 * (o.STUCK or 10))
      if has_problem then stuck = stuck + 1 end
      if has_problem or not o.STUCK then lines[#lines + 1] = line end
    end
  end
  local begins = (info['first-entry'] or {})[1]
  lines[#lines + 1] = object(10, {
    'next', cursor, 'more', ended, 'read', read, 'lines', #lines, 'exists', exists, 'shards', #names, 'stuck', stuck,
    'time', time_text(time), 'begins', begins, 'begins_time', time_of(begins),
  })
  return lines
end

local function register(name, callback)
  redis.register_function{function_name = name, callback = readable(name, callback), flags = {'no-writes'}}
end

register('chronolet_show_2', show)
register('chronolet_actors_1', actors)
register('chronolet_pod_1', pod)
