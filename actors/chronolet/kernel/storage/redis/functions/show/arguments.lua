-- Arguments and their errors. Next: streams.lua.

local function refuse(text)
  error({refused = text}, 0)
end

-- A function like `callback` that replies to an error in it with an error of one line.
local function readable(name, callback)
  return function(keys, args)
    local done, reply = pcall(callback, keys, args)
    if done then return reply end
    local text = type(reply) == 'table' and (reply.refused or reply.err) or tostring(reply)
    return redis.error_reply('ERR ' .. name .. ': ' .. string.gsub(text, '^ERR ', ''))
  end
end

local function moment(word, text)
  if text == '-' or text == '+' or string.match(text, '^%d+$') or string.match(text, '^%(?%d+%-%d+$') then
    return text
  end
  local found = milliseconds_of(text)
  if found then return string.format('%.0f', found) end
  refuse(word .. ' is ' .. quoted(text) .. ', expected a position (1764250267123-55, or (1764250267123-55 without that'
    .. ' entry), milliseconds, a time in UTC (2026-11-27T13:31:07Z), - or +')
end

-- The arguments from `first` on, as a table of values by word. `known` maps each word to what it takes: 'flag' (no
-- value), 'text', 'moment', 'list' (text; the word may be repeated), or {least, most} (a number in this range).
local function options(args, first, known)
  local found, i = {}, first
  while i <= #args do
    local word = string.upper(args[i])
    local takes, value = known[word], args[i + 1]
    if not takes then
      local words = {}
      for one in pairs(known) do words[#words + 1] = one end
      table.sort(words)
      refuse('unknown word ' .. quoted(args[i]) .. ', expected one of ' .. table.concat(words, ', '))
    end
    if takes == 'flag' then
      found[word] = true
      i = i + 1
    else
      if not value then refuse(word .. ' is the last word, expected a value after it') end
      if takes == 'moment' then value = moment(word, value) end
      if takes == 'list' then
        found[word] = found[word] or {}
        table.insert(found[word], value)
      elseif type(takes) == 'table' then
        local count = string.match(value, '^%d+$') and tonumber(value)
        if not count or count < takes[1] or count > takes[2] then
          refuse(string.format('%s is %s, expected a number from %d to %d', word, quoted(value), takes[1], takes[2]))
        end
        found[word] = count
      else
        found[word] = value
      end
      i = i + 2
    end
  end
  return found
end

-- Whether the text matches the pattern: `*` stands for any text, `?` for one byte, anything else for itself.
local function fits(pattern, text)
  local p, t, star, mark = 1, 1, nil, nil
  while t <= #text do
    local byte = string.byte(pattern, p)
    if byte == 42 then
      star, mark, p = p, t, p + 1
    elseif byte and (byte == 63 or byte == string.byte(text, t)) then
      p, t = p + 1, t + 1
    elseif star then
      mark = mark + 1
      p, t = star + 1, mark
    else
      return false
    end
  end
  while string.byte(pattern, p) == 42 do p = p + 1 end
  return p > #pattern
end

-- Whether one of the patterns matches `text` or `other`, which may be nil; true if there are no patterns.
local function chosen(patterns, text, other)
  if not patterns then return true end
  for _, pattern in ipairs(patterns) do
    if fits(pattern, text) or (other and fits(pattern, other)) then return true end
  end
  return false
end
