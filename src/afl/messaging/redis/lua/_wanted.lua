-- What subscriptions let through. Without one that is everything.
local function wanted_types()
  local types = redis.call('SMEMBERS', SUBS)
  if #types == 0 then return nil end
  local wanted = {}
  for _, type in ipairs(types) do wanted[type] = true end
  return wanted
end

local function is_wanted(id, wanted)
  return not wanted or wanted[string.match(id, '^%d+:%d:(%a+):')] or false
end
