-- keys: dlq messages attempts errors deaths
-- Answers id, attempts, last error, death and message of each, the oldest first.
local answer = {}
for _, id in ipairs(redis.call('LRANGE', DLQ, 0, tonumber(ARGV[2]) - 1)) do
  for _, key in ipairs({ATTEMPTS, ERRORS, DEATHS, MESSAGES}) do
    if key == ATTEMPTS then answer[#answer + 1] = id end
    answer[#answer + 1] = redis.call('HGET', key, id)
  end
end
return answer
