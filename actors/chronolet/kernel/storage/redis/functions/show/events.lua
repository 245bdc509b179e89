-- chronolet_show_2 and chronolet_pod_1: events of the log, or entries of another stream. Next: actors.lua.

local LINES_AT_MOST = 1000
local POD_LINES_AT_MOST = 200
local BYTES_AT_MOST = 2 ^ 22 -- of a reply; the line that exceeds it is the last one
local CAUSES = 5

-- The types of events after which nothing older about their entity is true any longer.
local BEGINS_ANEW = {['pod.PodEnded'] = true, ['pod.PodAdopted'] = true}

-- A function to call with each entry, newest first: whether it is the newest selected one about its entity and subject,
-- and its entity has not begun anew since.
local function newest()
  local seen = {}
  return function(fields, kind, selected)
    local entity, subject = fields.entity or '', fields.subject or ''
    local of = seen[entity] or {subjects = {}, anew = false}
    seen[entity] = of
    local keep = selected and not of.anew and not of.subjects[subject]
    if keep then of.subjects[subject] = true end
    of.anew = of.anew or BEGINS_ANEW[kind] or false
    return keep
  end
end

-- KEYS  a stream of a node: log, mailbox:<shard>, dead, kube_events, probe_results
-- ARGV  [FROM m] [TO m] [TYPE p]* [ENTITY p]* [SUBJECT p]* [CAUSE p]* [REV] [LATEST] [LINES n] [READ n]
--       m: a position, milliseconds, a time in UTC; both ends are included, and `(` before a position excludes it
--       p: a pattern with * and ?; that of TYPE may omit the version; of several patterns for a field, one must match
--       REV: newest first. LATEST: newest first, and only the newest selected entry about each entity and subject; for
--       a pod, no entry from before its last end or adoption
--       LINES: entries shown, 10 (0 to 1000). READ: entries examined, 10000 (1 to 10000)
-- Lines: position, time, then the entry's fields, `data` decoded. The summary's `next` is FROM of the next call; with
-- REV or LATEST it is TO.
local function show(keys, args)
  local key = keys[1]
  local o = options(args, 1, {FROM = 'moment', TO = 'moment', TYPE = 'list', ENTITY = 'list', SUBJECT = 'list',
    CAUSE = 'list', REV = 'flag', LATEST = 'flag', LINES = {0, LINES_AT_MOST}, READ = {1, READ_AT_MOST}})
  check_type(key, 'stream')
  local lines, limit, size, keeps = {}, o.LINES or 10, 0, o.LATEST and newest()
  local cursor, ended, read = scan(key, o, o.REV or o.LATEST, o.READ or READ_AT_MOST, function(entry)
    if #lines >= limit or size > BYTES_AT_MOST then return false end
    local fields = fields_of(entry)
    local named = fields.type or ''
    local kind = string.gsub(named, '@%d+$', '')
    local selected = chosen(o.TYPE, named, kind) and chosen(o.ENTITY, fields.entity or '')
      and chosen(o.SUBJECT, fields.subject or '') and chosen(o.CAUSE, fields.cause or '')
    if keeps then selected = keeps(fields, kind, selected) end
    if selected then
      lines[#lines + 1] = line_of(entry)
      size = size + #lines[#lines]
    end
    return true
  end)
  return summary(key, lines, cursor, ended, read)
end

-- What led to an entry with this cause, nearest first: entries of the log, then the request if a command was the
-- origin.
local function causes(key, cause)
  local found = {}
  while cause ~= '' do
    if not parse(cause) then
      found[#found + 1] = {request = cause}
      break
    end
    if #found == CAUSES then
      found[#found + 1] = {position = cause, further = true}
      break
    end
    local entry = redis.call('XRANGE', key, cause, cause)[1]
    if not entry then
      found[#found + 1] = {position = cause, gone = true}
      break
    end
    local fields = fields_of(entry)
    found[#found + 1] = {
      position = cause, time = time_of(cause), type = fields.type, entity = fields.entity, subject = fields.subject,
    }
    cause = fields.cause or ''
  end
  return #found > 0 and found or NONE
end

-- Whether an event is the pod's own, or another actor's about the pod: one that names the pod, or a KubeEvent of it.
-- `short` is the pod's name without its namespace.
local function is_about(fields, name, short)
  if fields.entity == 'pod/' .. name then return true end
  if not string.find(fields.data or '', short, 1, true) then return false end
  local data = unpacked(fields.data)
  if type(data) ~= 'table' then return false end
  return data.pod == name
    or (data.object_kind == 'Pod' and data.name == short and tostring(data.namespace) .. '/' .. short == name)
end

-- KEYS  log
-- ARGV  pod [FROM m] [TO m] [LINES n] [READ n]     pod: namespace/name, or a name in `default`
--       LINES: 20 (0 to 200); the rest as in `show`
-- Newest first: the events of the pod and those of other actors about it. Lines: as in `show`, with `causes`, a list of
-- at most 5 entries that led to it, nearest first: {position time type entity subject}, {request} of a command,
-- {position gone} if the entry is not in the stream, or {position further} where a longer list is cut. READ does not
-- count these entries.
local function pod(keys, args)
  local key, name = keys[1], args[1]
  if not name or name == '' then refuse('no pod was given, expected namespace/name after the key') end
  if not string.find(name, '/', 1, true) then name = 'default/' .. name end
  local o = options(args, 2, {FROM = 'moment', TO = 'moment', LINES = {0, POD_LINES_AT_MOST}, READ = {1, READ_AT_MOST}})
  check_type(key, 'stream')
  local lines, limit, size, short = {}, o.LINES or 20, 0, string.match(name, '[^/]*$')
  local cursor, ended, read = scan(key, o, true, o.READ or READ_AT_MOST, function(entry)
    if #lines >= limit or size > BYTES_AT_MOST then return false end
    local fields = fields_of(entry)
    if is_about(fields, name, short) then
      lines[#lines + 1] = line_of(entry, {'causes', causes(key, fields.cause or '')})
      size = size + #lines[#lines]
    end
    return true
  end)
  return summary(key, lines, cursor, ended, read)
end
