-- Keeps a value for a limited time. If its kind is full, this script first deletes the oldest values of the kind. All
-- keys of a kind are on one node of a cluster.
-- KEYS[1]: the index of the kind: a sorted set of keys, scored by their expiry time in milliseconds
-- KEYS[2]: the key of the value
-- ARGV[1]: the value; ARGV[2]: its lifetime in milliseconds; ARGV[3]: the capacity of the kind
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = tonumber(ARGV[2])
redis.call('zremrangebyscore', KEYS[1], '-inf', now)
local over = redis.call('zcard', KEYS[1]) + 1 - tonumber(ARGV[3])
if over > 0 then
  local oldest = redis.call('zpopmin', KEYS[1], over)
  -- ZPOPMIN returns keys and scores in turn.
  for at = 1, #oldest, 2 do redis.call('del', oldest[at]) end
end
redis.call('set', KEYS[2], ARGV[1], 'px', life)
redis.call('zadd', KEYS[1], now + life, KEYS[2])
redis.call('pexpire', KEYS[1], life)
return 1
