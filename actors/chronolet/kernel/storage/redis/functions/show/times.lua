-- Times in UTC as text, and positions. Next: arguments.lua.

-- The days from 1970-01-01 to the first of March of a year. Years are counted from March, so that a leap day is the
-- last day of its year.
local function days_to_march(year)
  return 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400) - 719468
end

-- Milliseconds since 1970 as '2026-11-27T13:31:07.123Z'; nil for nil and for a time after the year 2999.
local function time_text(milliseconds)
  if not milliseconds or milliseconds >= 32503680000000 then return nil end
  local days = math.floor(milliseconds / 86400000)
  local left = milliseconds - days * 86400000
  local year = math.floor((days + 719468) / 365.2425)
  while days_to_march(year) > days do year = year - 1 end
  while days_to_march(year + 1) <= days do year = year + 1 end
  local day = days - days_to_march(year)
  local month = math.floor((5 * day + 2) / 153)
  day = day - math.floor((153 * month + 2) / 5) + 1
  if month >= 10 then year, month = year + 1, month - 12 end
  local seconds = math.floor(left / 1000)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month + 3, day,
    math.floor(seconds / 3600), math.floor(seconds / 60) % 60, seconds % 60, left % 1000)
end

-- The milliseconds of '2026-11-27', '2026-11-27T13:31Z', '2026-11-27T13:31:07Z' or '2026-11-27T13:31:07.123Z'; nil for
-- anything else.
local function milliseconds_of(text)
  local year, month, day, rest = string.match(text, '^(%d%d%d%d)%-(%d%d)%-(%d%d)(.*)$')
  if not year or year < '1970' then return nil end
  local hour, minute, second, fraction = string.match(rest, '^T(%d%d):(%d%d):(%d%d)(%.?%d*)Z$')
  if not hour then hour, minute, second, fraction = string.match(rest, '^T(%d%d):(%d%d)()()Z$') end
  if rest == '' then hour, minute, second = 0, 0, 0 end
  if type(second) ~= 'string' then second, fraction = 0, '' end
  if not hour or #fraction == 1 then return nil end
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  local since_march = (month + 9) % 12
  local days = days_to_march(month < 3 and year - 1 or year) + math.floor((153 * since_march + 2) / 5) + day - 1
  local found = days * 86400000 + hour * 3600000 + minute * 60000 + second * 1000
    + math.floor(1000 * tonumber('0' .. (fraction == '' and '.0' or fraction)))
  local right = month >= 1 and month <= 12 and tonumber(hour) < 24 and tonumber(minute) < 60 and tonumber(second) < 60
  -- A day that the month does not have yields another date, which differs from the text.
  return right and string.sub(time_text(found) or '', 1, 10) == string.sub(text, 1, 10) and found or nil
end

-- '<ms>-<n>' as two numbers; nil if it is malformed or has more than 15 digits in a part.
local function parse(id)
  local ms, n = string.match(id or '', '^(%d+)-(%d+)$')
  if not ms or #ms > 15 or #n > 15 then return nil end
  return tonumber(ms), tonumber(n)
end

local function time_of(id)
  return time_text((parse(id)))
end
