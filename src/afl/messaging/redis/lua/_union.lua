-- The set of subscribed types is what all subscriptions want together.
local function unite()
  redis.call('DEL', SUBS)
  for _, types in ipairs(redis.call('HVALS', SUBSCRIPTIONS)) do
    for type in string.gmatch(types, '%a+') do redis.call('SADD', SUBS, type) end
  end
end
