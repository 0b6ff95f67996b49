-- The part that any picker can use: numbers beyond 2^53, the arrays of pools and tokens, the threshold and its rule.
-- It makes the decisions of `core/dispatcher.py`, `core/learning.py` and `core/poolset.py`, in the same order.
--
-- A fleet's keys come in this order. `S` is the state of one call: it is read at the start and written at the end.
local FLEET, HOT, COLD, MEMBERS, GREEN, YELLOW, UNSETTLED = 1, 2, 3, 4, 5, 6, 7
local FULL, DRAINING, OPEN, EXPIRING, ANSWERS, ORDER, PLACES = 8, 9, 10, 11, 12, 13, 14

local MAX_COUNT = 1e12
local NEVER = 9e15 -- times are whole microseconds; this is beyond all of them, and below 2^53
local TRIES = 4 -- to hit a pool that need not be avoided
local CHUNK = 1000 -- fields in one command; Lua cannot pass many more

-- Big numbers ---------------------------------------------------------------------------------------------------
-- Tickets and epochs go up to 2^63; Lua counts to 2^53. They are text of 19 digits, which compares like numbers.

local function big(text)
  return string.rep('0', 19 - #text) .. text
end

local function next_big(number)
  local low = tonumber(string.sub(number, 11)) + 1
  if low < 1e9 then
    return string.sub(number, 1, 10) .. string.format('%09d', low)
  end
  return string.format('%010.0f', tonumber(string.sub(number, 1, 10)) + 1) .. '000000000'
end

-- Return the first number of a term: 2^32 times the term, which is below 2^31.
local function first_of_term(term)
  local low = term * 967296
  local high = term * 4294 + math.floor(low / 1e6)
  return big(string.format('%.0f', high) .. string.format('%06.0f', low % 1e6))
end

-- Return the term of a number: the number divided by 2^32, rounded down. Long division in steps of six digits.
local function term_of(number)
  local quotient, rest = 0, tonumber(string.sub(number, 1, 1))
  for start = 2, 14, 6 do
    rest = rest * 1e6 + tonumber(string.sub(number, start, start + 5))
    local part = math.floor(rest / 4294967296)
    quotient, rest = quotient * 1e6 + part, rest - part * 4294967296
  end
  return quotient
end

-- The state of a call -------------------------------------------------------------------------------------------

-- It is one packed value: many fields, or numbers as text, would take longer than the rest of a pick.
local COUNTS = {[MEMBERS] = 'members', [GREEN] = 'green', [YELLOW] = 'yellow', [UNSETTLED] = 'unsettled', [FULL] = 'full'}
local STATE, STATE_SIZE = '<c19c19dddddddddddddd', 150

-- `since`, `catch`, `due` and `check` are NEVER when there is nothing to wait for.
local function pack_state(S)
  return struct.pack(
    STATE, S.epoch, S.unused, S.threshold, S.now, S.due, S.check, S.since, S.catch,
    S.serial, S.expired, S.released, S.members, S.green, S.yellow, S.unsettled, S.full
  )
end

-- Read the state; nil if there is none.
local function load_state(keys)
  local packed = redis.call('HGET', keys[FLEET], 'state')
  if not packed then
    return nil
  end
  if #packed ~= STATE_SIZE then
    error('CORRUPT: the state cannot be read')
  end
  local epoch, unused, threshold, now, due, check, since, catch, serial, expired, released, members, green, yellow,
    unsettled, full = struct.unpack(STATE, packed)
  return {
    keys = keys, was = packed, old_epoch = epoch, threshold = threshold, epoch = epoch, unused = unused, now = now,
    due = due, check = check, since = since, catch = catch, serial = serial, expired = expired, released = released,
    members = members, green = green, yellow = yellow, unsettled = unsettled, full = full,
  }
end

-- Write the state if it has changed, and tell the dispatchers of a new threshold.
local function save_state(S)
  local packed = pack_state(S)
  if packed ~= S.was then
    redis.call('HSET', S.keys[FLEET], 'state', packed)
  end
  if S.epoch ~= S.old_epoch then
    redis.call('PUBLISH', string.gsub(S.keys[FLEET], 'fleet$', 'notices'), S.epoch)
  end
end

-- Arrays: a hash of '#position' -> pool and pool -> position. A pool's name begins with a letter or a digit. --------

local function put(S, set, pool)
  local key, count = S.keys[set], COUNTS[set]
  redis.call('HSET', key, pool, S[count], '#' .. S[count], pool)
  S[count] = S[count] + 1
end

-- Move the last pool into the gap, like PoolSet.
local function remove(S, set, pool)
  local key, count = S.keys[set], COUNTS[set]
  local last = S[count] - 1
  local found = redis.call('HMGET', key, pool, '#' .. last)
  if not (found[1] and found[2]) then
    error('CORRUPT: a pool is not where it should be')
  end
  redis.call('HDEL', key, pool, '#' .. last)
  if tonumber(found[1]) < last then
    redis.call('HSET', key, '#' .. found[1], found[2], found[2], found[1])
  end
  S[count] = last
end

local function at(S, set, position)
  local pool = redis.call('HGET', S.keys[set], '#' .. position)
  if not pool then
    error('CORRUPT: a set of pools has a gap')
  end
  return pool
end

local function list(S, set)
  local pools, size = {}, S[COUNTS[set]]
  for start = 0, size - 1, CHUNK do
    local fields = {}
    for position = start, math.min(start + CHUNK, size) - 1 do
      fields[#fields + 1] = '#' .. position
    end
    for _, pool in ipairs(redis.call('HMGET', S.keys[set], unpack(fields))) do
      pools[#pools + 1] = pool or error('CORRUPT: a set of pools has a gap')
    end
  end
  return pools
end

-- Write many fields or members of one key.
local function write_all(command, key, values)
  for start = 1, #values, CHUNK do
    redis.call(command, key, unpack(values, start, math.min(start + CHUNK - 1, #values)))
  end
end

local function flag(S, set, pool, was, is)
  if is and not was then
    S[COUNTS[set]] = S[COUNTS[set]] + redis.call('SADD', S.keys[set], pool)
  elseif was and not is then
    S[COUNTS[set]] = S[COUNTS[set]] - redis.call('SREM', S.keys[set], pool)
  end
end

local function token(S, set, pool, was, is)
  if is and not was then
    put(S, set, pool)
  elseif was and not is then
    remove(S, set, pool)
  end
end

-- The dispatcher ------------------------------------------------------------------------------------------------

-- Set the estimate of a member; nil means that it is not a member. Tokens follow from estimate and threshold, so
-- that the old estimate says which ones it has. The caller keeps the estimate.
local function set_estimate(S, pool, old, new, capacity)
  local threshold = S.threshold
  token(S, GREEN, pool, old and old < threshold, new and new < threshold)
  token(S, YELLOW, pool, old and old <= threshold, new and new <= threshold)
  flag(S, FULL, pool, capacity and old and old >= capacity, capacity and new and new >= capacity)
end

local function join(S, pool)
  put(S, MEMBERS, pool)
  flag(S, UNSETTLED, pool, false, true)
end

local function leave(S, pool, estimate, capacity)
  remove(S, MEMBERS, pool)
  flag(S, UNSETTLED, pool, true, false)
  set_estimate(S, pool, estimate, nil, capacity)
end

local function settle(S)
  redis.call('DEL', S.keys[UNSETTLED])
  S.unsettled = 0
end

-- Set the threshold in a new epoch. `estimates` returns the estimates of a list of pools.
local function restart(S, threshold, epoch, estimates)
  S.threshold, S.epoch = threshold, epoch
  redis.call('DEL', S.keys[GREEN], S.keys[YELLOW], S.keys[UNSETTLED])
  local members, green, yellow = list(S, MEMBERS), {}, {}
  S.green, S.yellow, S.unsettled = 0, 0, #members
  for index, estimate in ipairs(estimates(S, members)) do
    local pool = members[index]
    if estimate < threshold then
      green[#green + 1], green[#green + 2], green[#green + 3], green[#green + 4] =
        pool, S.green, '#' .. S.green, pool
      S.green = S.green + 1
    end
    if estimate <= threshold then
      yellow[#yellow + 1], yellow[#yellow + 2], yellow[#yellow + 3], yellow[#yellow + 4] =
        pool, S.yellow, '#' .. S.yellow, pool
      S.yellow = S.yellow + 1
    end
  end
  write_all('HSET', S.keys[GREEN], green)
  write_all('HSET', S.keys[YELLOW], yellow)
  write_all('SADD', S.keys[UNSETTLED], members)
end

-- Return the rule's step from the tokens held now; 0 while it waits for answers. Integers decide.
local function learning_step(S, numerator, denominator)
  if S.unsettled > 0 then
    return 0
  end
  local rise = S.yellow <= 1 and 1 or 0
  local fall = (S.members - S.green) * denominator <= S.members * numerator and 1 or 0
  return rise - fall
end

local function learn(S, step, estimates)
  local threshold = S.threshold + step
  if step ~= 0 and threshold >= 0 and threshold <= MAX_COUNT then
    restart(S, threshold, next_big(S.epoch), estimates)
  end
end

-- A source of positions: the numbers from 0 to 1 that the caller gave, and then those that follow from the seed.
local function dice(seed, numbers)
  local used, seeded = 0, false
  return function(size)
    used = used + 1
    local number = numbers[used]
    if number then
      return math.floor(tonumber(number) * size)
    end
    if not seeded then
      math.randomseed(seed)
      seeded = true
    end
    return math.random(size) - 1
  end
end

local function choose_around(S, roll, exclude)
  if S.full == S.members then
    return nil
  end
  local full = nil
  for _, set in ipairs({GREEN, YELLOW, MEMBERS}) do
    local size = S[COUNTS[set]]
    for _ = 1, size > 0 and TRIES or 0 do
      local pool = at(S, set, roll(size))
      if not exclude[pool] and (S.full == 0 or redis.call('SISMEMBER', S.keys[FULL], pool) == 0) then
        return pool
      end
    end
    if size > 0 and not full then -- a few tries usually do; only then is it worth looking at every pool
      full = {}
      for _, pool in ipairs(S.full > 0 and redis.call('SMEMBERS', S.keys[FULL]) or {}) do
        full[pool] = true
      end
    end
    local left = {}
    for _, pool in ipairs(list(S, set)) do
      if not exclude[pool] and not full[pool] then
        left[#left + 1] = pool
      end
    end
    if #left > 0 then
      return left[roll(#left) + 1]
    end
  end
  return nil
end

-- Choose a member: with a green token, else with a yellow one, else any. None of those to avoid.
local function choose(S, roll, exclude)
  if S.full > 0 or next(exclude) then
    return choose_around(S, roll, exclude)
  end
  local set = S.green > 0 and GREEN or S.yellow > 0 and YELLOW or MEMBERS
  local size = S[COUNTS[set]]
  return size > 0 and at(S, set, roll(size)) or nil
end
