-- keys: meta dlq messages attempts errors deaths
-- uses: graves
-- Answers how many of one page.
local _, limit, message_id = unpack(ARGV)
local ids = exhume(message_id, tonumber(limit))
for _, id in ipairs(ids) do
  for _, key in ipairs({MESSAGES, ATTEMPTS, ERRORS, DEATHS}) do redis.call('HDEL', key, id) end
end
if #ids > 0 then redis.call('HINCRBY', META, 'purged', #ids) end
return #ids
