-- keys: config meta queue high normal low reserved deadlines dlq messages attempts errors deaths expiries subs
-- uses: clock letters burial overdue wanted
-- Answers {ok, recovered, buried, microseconds until something is due, or nothing}, then token, id,
-- deadline, attempts, last error and message of each; or unconfigured.
local _, token, limit, visibility = unpack(ARGV)
local now = look_at_clock()
local settings = redis.call('HMGET', CONFIG, 'retry_attempts', 'fairness')
if not settings[1] then return {'unconfigured'} end
redis.call('HSET', META, 'clock', exact(now))

local recovered, buried = put_right(tonumber(settings[1]), now)
local answer = {'ok', recovered, buried, false}
local wanted = wanted_types()
local stamp = exact(now)

local function token_of(number)
  return number == 1 and token or token .. '-' .. number
end

local function tell(token, id, deadline, attempts)
  local last = #answer
  answer[last + 1] = token
  answer[last + 2] = id
  answer[last + 3] = deadline
  answer[last + 4] = attempts
  answer[last + 5] = redis.call('HGET', ERRORS, id)
  answer[last + 6] = redis.call('HGET', MESSAGES, id)
end

-- The answer was lost: the same again.
if redis.call('HEXISTS', RESERVED, token) == 1 then
  for number = 1, tonumber(limit) do
    local value = redis.call('HGET', RESERVED, token_of(number))
    if value then
      local id = string.match(value, '^%S+ (.*)$')
      local deadline = redis.call('ZSCORE', DEADLINES, token_of(number))
      tell(token_of(number), id, deadline, redis.call('HGET', ATTEMPTS, id))
    end
  end
  return answer
end

-- How many letters of a level nobody wants before the first that somebody does.
local skipped = {}

local function first_in(level)
  local page = wanted and 200 or 1
  local offset = skipped[level] or 0
  while true do
    local found = redis.call(
      'ZRANGEBYSCORE', level, '-inf', stamp, 'WITHSCORES', 'LIMIT', offset, page)
    for place = 1, #found, 2 do
      if is_wanted(found[place], wanted) then
        skipped[level] = offset + (place - 1) / 2
        return found[place], found[place + 1]
      end
    end
    offset = offset + #found / 2
    skipped[level] = offset
    if #found < 2 * page then return nil end
  end
end

local LEVELS = {HIGH, NORMAL, LOW}
local WEIGHTS = {9, 5, 1}

local function next_strict()
  for _, level in ipairs(LEVELS) do
    local id, score = first_in(level)
    if id then return level, id, score end
  end
end

-- Nine, five and one of fifteen, as long as all levels have something; nobody's turn is wasted.
local credits = redis.call('HMGET', META, 'credit:9', 'credit:5', 'credit:1')

local function spend(place)
  credits[place] = credits[place] - 1
  redis.call('HSET', META, 'credit:9', credits[1], 'credit:5', credits[2], 'credit:1', credits[3])
end

local function next_weighted()
  for place, weight in ipairs(WEIGHTS) do credits[place] = tonumber(credits[place] or weight) end
  for turn = 1, 2 do
    for place, level in ipairs(LEVELS) do
      if credits[place] > 0 then
        local id, score = first_in(level)
        if id then
          spend(place)
          return level, id, score
        end
      end
    end
    for place, weight in ipairs(WEIGHTS) do credits[place] = weight end
  end
end

local next_one = settings[2] == 'weighted' and next_weighted or next_strict
local deadline = exact(now + tonumber(visibility))
for number = 1, tonumber(limit) do
  local level, id, score = next_one()
  if not id then break end
  redis.call('ZREM', level, id)
  redis.call('ZREM', EXPIRIES, id)
  redis.call('HSET', RESERVED, token_of(number), score .. ' ' .. id)
  redis.call('ZADD', DEADLINES, deadline, token_of(number))
  tell(token_of(number), id, deadline, redis.call('HINCRBY', ATTEMPTS, id, 1))
end

if #answer == 4 then
  local due = math.huge
  for _, key in ipairs({HIGH, NORMAL, LOW, DEADLINES}) do
    local first = redis.call('ZRANGEBYSCORE', key, '(' .. stamp, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if first[2] then due = math.min(due, tonumber(first[2])) end
  end
  if due < math.huge then answer[4] = exact(due - now) end
end
return answer
