-- Admits a request if each of its keys has fewer admitted requests in the last `window` milliseconds than the key's
-- limit. Records an admitted request under all of its keys, and a refused request under no key.
--
--   KEYS     the logs: the log of one key, or the logs of a token and of its account
--   ARGV     [1] window in milliseconds; [1 + i] limit of KEYS[i]
--   returns  two numbers for each key:
--            - admitted requests in the window, including this one if it is admitted; limit + 1 if this key refuses it
--            - milliseconds until a slot is free if this key refuses it; otherwise until the oldest of these requests
--              leaves the window
--
-- The limit may change with every call. After it was lowered, the window may hold more requests than the limit.
--
-- A log is one string: a head of 12 bytes (base time as a double, number of expired entries as u32), then entries of 4
-- bytes, oldest first, in milliseconds after the base. To expire entries, the script only changes the number in the
-- head. It rewrites the string when expired entries outnumber the others, so on average a call writes few bytes, even
-- if the limit is high. Decision record 0180 compares this format with others.

local HEAD_BYTES, ENTRY_BYTES, FIRST_READ = 12, 4, 1024

-- If a log's base is at least this many milliseconds old when the log is rewritten, the log gets a new base. An entry
-- has room for almost twice this number.
local MAX_OFFSET = 2147483648

local window = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Returns the time of the entry at a position, counted from 0. `readLog` has read the first kilobyte of the log. Later
-- entries are read one by one.
local function timeAt(log, position)
  local offset = HEAD_BYTES + ENTRY_BYTES * position
  if offset + ENTRY_BYTES <= #log.bytes then return log.base + struct.unpack('>I4', log.bytes, offset + 1) end
  return log.base + struct.unpack('>I4', redis.call('GETRANGE', log.key, offset, offset + ENTRY_BYTES - 1))
end

local function packHead(log, dead) return struct.pack('>dI4', log.base, dead) end

local function saveHead(log)
  if log.changed then redis.call('SETRANGE', log.key, 0, packHead(log, log.dead)) end
end

-- Reads a log and counts its live entries. Writes nothing.
local function readLog(key)
  local bytes = redis.call('GETRANGE', key, 0, FIRST_READ - 1)
  local log = { key = key, bytes = bytes, base = now, dead = 0, count = 0, live = 0, changed = false }
  if #bytes == 0 then return log end
  log.base, log.dead = struct.unpack('>dI4', bytes)
  log.count = ((#bytes < FIRST_READ and #bytes or redis.call('STRLEN', key)) - HEAD_BYTES) / ENTRY_BYTES
  if log.count == log.dead then return log end

  -- If the clock stepped back, move all times of the log back, as if the newest entry were added now. So no request is
  -- admitted too early, and the key is free again after one window at most.
  local ahead = timeAt(log, log.count - 1) - now
  if ahead > 0 then log.base, log.changed = log.base - ahead, true end

  -- Finds the first entry inside the window. Usually few entries have left the window since the last call. So the
  -- search starts at the oldest entry with steps that double, and bisects the last step.
  local edge = now - window
  if timeAt(log, log.dead) <= edge then
    local low, high, step = log.dead + 1, log.dead + 1, 1
    while high < log.count and timeAt(log, high) <= edge do
      low, high, step = high + 1, high + step, step * 2
    end
    high = math.min(high, log.count)
    while low < high do
      local middle = math.floor((low + high) / 2)
      if timeAt(log, middle) <= edge then low = middle + 1 else high = middle end
    end
    log.dead, log.changed = low, true
  end
  log.live = log.count - log.dead
  return log
end

-- Adds the request to a log. Returns the time of the oldest entry in the window.
local function record(log)
  local key = log.key
  if log.live == 0 then
    log.base = now
    redis.call('SET', key, packHead(log, 0) .. struct.pack('>I4', 0), 'PX', window)
    return now
  end
  local oldest = timeAt(log, log.dead)
  if log.dead > log.live then
    -- Rewrites the log without its expired entries.
    local kept = redis.call('GETRANGE', key, HEAD_BYTES + ENTRY_BYTES * log.dead, -1)
    if now - log.base >= MAX_OFFSET then
      local entries = {}
      for at = 1, #kept, ENTRY_BYTES do
        entries[#entries + 1] = struct.pack('>I4', log.base + struct.unpack('>I4', kept, at) - oldest)
      end
      kept, log.base = table.concat(entries), oldest
    end
    redis.call('SET', key, packHead(log, 0) .. kept .. struct.pack('>I4', now - log.base), 'PX', window)
  else
    saveHead(log)
    redis.call('APPEND', key, struct.pack('>I4', now - log.base))
    redis.call('PEXPIRE', key, window)
  end
  return oldest
end

local logs, isAdmitted = {}, true
for i, key in ipairs(KEYS) do
  local log = readLog(key)
  log.limit = tonumber(ARGV[1 + i])
  isAdmitted = isAdmitted and log.live < log.limit
  logs[i] = log
end

local reply = {}
for _, log in ipairs(logs) do
  local used, nextToLeave
  if isAdmitted then
    used, nextToLeave = log.live + 1, record(log)
  else
    saveHead(log)
    if log.live >= log.limit then
      used, nextToLeave = log.limit + 1, timeAt(log, log.count - log.limit)
    else
      used, nextToLeave = log.live, log.live > 0 and timeAt(log, log.dead) or now
    end
  end
  reply[#reply + 1] = used
  reply[#reply + 1] = nextToLeave + window - now
end
return reply
