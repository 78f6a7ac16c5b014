-- Admits a request if fewer than `limit` requests were admitted in the last `window` microseconds. Records an admitted
-- request, and not a refused one. rate-limiter-flexible passes these arguments, and reads the reply:
--
--   KEYS[1]  the log: a sorted set with a member for each admitted request, scored by its time in microseconds
--   ARGV     [1] 1, or 0 to record nothing; [2] window in seconds; [3] limit
--   returns  - admitted requests in the window, including this one if it is recorded; limit + 1 if it is refused
--            - milliseconds until a slot is free if no slot is left; otherwise until the oldest request leaves the window
--
-- The limit may change with every call. After it was lowered, the window may hold more requests than the limit.

local log, limit = KEYS[1], tonumber(ARGV[3])
local window = tonumber(ARGV[2]) * 1000000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Members are numbers in the order of the requests. All have ten digits, so that Redis also sorts members with equal
-- scores by number.
local newest = redis.call('ZRANGE', log, -1, -1, 'WITHSCORES')
local number, ahead = newest[1] or 1000000000, (newest[2] or now) - now

-- If the clock was set back, move all times of the log back, as if the newest request were admitted now. So no request is
-- admitted too early, and the key is free again after one window at most.
if ahead > 0 then
  local entries = redis.call('ZRANGE', log, 0, -1, 'WITHSCORES')
  for i = 1, #entries, 2 do redis.call('ZADD', log, entries[i + 1] - ahead, entries[i]) end
end

redis.call('ZREMRANGEBYSCORE', log, '-inf', now - window)
local used = redis.call('ZCARD', log)
local isAdmitted = used < limit
if isAdmitted and ARGV[1] ~= '0' then
  redis.call('ZADD', log, now, string.format('%d', number + 1))
  redis.call('EXPIRE', log, ARGV[2])
  used = used + 1
end

local nextToLeave = math.max(used - limit, 0)
local leaver = redis.call('ZRANGE', log, nextToLeave, nextToLeave, 'WITHSCORES')
local wait = leaver[2] and leaver[2] + window - now or 0
return { isAdmitted and used or limit + 1, math.ceil(wait / 1000) }
