#!lua name=chronolet_show
-- The read-only functions that people call with redis-cli (docs/redis-cli.md, docs/adr/0041). They work on a replica,
-- on a full server and for a user that may only read. Published functions are never changed or replaced: a changed
-- version gets a new name, in a library of its own.
--
-- Input: one key of a node, and arguments as text: `WORD value` pairs in any order, words in upper or lower case.
-- Output: a list of lines, each a JSON object. The last line is a summary, with the cursor for the next call.
-- Errors are one line of text that says what was found and what was expected.
--
-- Globals such as `string` cannot be used while a library loads, so only code in functions uses them.
-- Next: redis-cli. The library is the text of json.lua (values as text), times.lua, arguments.lua, streams.lua,
-- events.lua and actors.lua.

-- The number of bytes of the UTF-8 character of several bytes at `i`; nil if there is none.
local function character(text, i)
  local first, second = string.byte(text, i, i + 1)
  local size = first < 0xC2 and 0 or first < 0xE0 and 2 or first < 0xF0 and 3 or first < 0xF5 and 4 or 0
  local least = first == 0xE0 and 0xA0 or first == 0xF0 and 0x90 or 0x80
  local most = first == 0xED and 0x9F or first == 0xF4 and 0x8F or 0xBF
  if size == 0 or not second or second < least or second > most then return nil end
  for j = i + 2, i + size - 1 do
    local byte = string.byte(text, j)
    if not byte or byte < 0x80 or byte > 0xBF then return nil end
  end
  return size
end

-- A text as JSON. Bytes that are not UTF-8 become U+FFFD. cjson puts a backslash before each slash; JSON needs none.
local function quoted(text)
  local valid = string.gsub(text, '[\128-\255]+', function(bytes)
    local parts, i = {}, 1
    while i <= #bytes do
      local size = character(bytes, i)
      parts[#parts + 1] = size and string.sub(bytes, i, i + size - 1) or '\239\191\189'
      i = i + (size or 1)
    end
    return table.concat(parts)
  end)
  return (string.gsub(cjson.encode(valid), '\\/', '/'))
end

local function number(value)
  assert(value == value and math.abs(value) ~= math.huge, 'a number is infinite or no number')
  if value == math.floor(value) and math.abs(value) < 2 ^ 53 then return string.format('%.0f', value) end
  local short = string.format('%.15g', value)
  return tonumber(short) == value and short or string.format('%.17g', value)
end

-- An empty list, printed as []. Any other empty table may be a list or a map, and is printed as {}.
local NONE = {}

-- A value as JSON, with the names in a map sorted. In a payload, an empty list is printed as {}, and null fields are
-- omitted.
local function json(value, depth)
  local kind = type(value)
  if kind == 'string' then return quoted(value) end
  if kind == 'number' then return number(value) end
  if kind == 'boolean' then return tostring(value) end
  if kind ~= 'table' then return 'null' end
  if value == NONE then return '[]' end
  depth = (depth or 0) + 1
  assert(depth < 100, 'nested too deeply')
  local parts, names, length = {}, {}, 0
  for i in ipairs(value) do length = i end
  for name in pairs(value) do names[#names + 1] = {tostring(name), name} end
  if length > 0 and length == #names then
    for i, inner in ipairs(value) do parts[i] = json(inner, depth) end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  table.sort(names, function(a, b) return a[1] < b[1] end)
  for i, name in ipairs(names) do parts[i] = quoted(name[1]) .. ':' .. json(value[name[2]], depth) end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- A JSON object with its fields in the given order; `fields` is a list {name, value, name, value ...} of `count`
-- fields. A value that is nil is printed as null.
local function object(count, fields)
  local parts = {}
  for i = 1, count do parts[i] = quoted(fields[2 * i - 1]) .. ':' .. json(fields[2 * i]) end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- What is shown in place of a payload that cannot be decoded or printed. `why` is a Lua error, whose file and line are
-- removed.
local function undecodable(why)
  return {undecodable = (string.gsub(tostring(why), '^user_function:%d+: ', ''))}
end

-- An event's payload, as a value.
local function unpacked(data)
  local done, rest, value = pcall(function()
    assert(data ~= '', 'there is nothing')
    return cmsgpack.unpack_one(data)
  end)
  if done and rest == -1 then return value end
  return undecodable(done and 'there is something behind the first value' or rest)
end
