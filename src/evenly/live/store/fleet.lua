-- The fleet: what `core/protocol` decides (`dispatcher_peer.py`, `ranking.py`, `answers.py`, `tickets.py`), with the
-- rule of `core/learning.py`. `S` is the state of one call: it is read at the start and written at the end.
--
-- FLEET    a hash: the packed state, the signing key, the run of the server
-- HOT      pool -> packed next_ticket, estimate, open_tickets; the estimate is -1 if the pool is not a member
-- COLD     pool -> packed serial, heard, tasks, leaving, incarnation, sequence; records are in order of serial
-- RANKED   a sorted set of the pools that can take a task, by estimate
-- ORDERS   pool -> 'version drained': the operators' last order, 1 to drain it and 0 to end that; the newest counts
-- PLACES   pool -> 'incarnation capacity address'; the capacity is '-' if there is no limit
-- OPEN     a sorted set of 'pool/ticket', all with score 0, so that it is sorted by text
-- EXPIRING a sorted set of 'pool ticket' by the end of the lease; dispatchers may have different leases
-- ANSWERS  request key -> JSON of the request and the picks
-- ORDER    a sorted set of the keys of the answers, by the time until which they are kept

local FLEET, HOT, COLD, RANKED, ORDERS, OPEN, EXPIRING, ANSWERS, ORDER, PLACES = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

local MAX_POOLS, MAX_ANSWERS, MAX_TERM, MAX_COUNT = 10000, 100000, 2147483647, 1e12
local MAX_PLACES = 500000 -- picks within one lease
local MAX_EXPIRED = 500 -- places to give back in one call, so that no call takes long
local MAX_STEP = 30e6 -- that time passes in one call, or the silence of a dead pool: the store's clock may jump
local NEVER = 9e15 -- times are whole microseconds; this is beyond all of them, and below 2^53
local CHUNK = 1000 -- fields in one command; Lua cannot pass many more

-- Return a whole number as text. Lua's own conversion rounds to 14 digits.
local function exact(number)
  return string.format('%d', number)
end

local function too_many_pools()
  return redis.error_reply('LIMIT There can be at most ' .. MAX_POOLS .. ' pools.')
end

-- Write many fields or members of one key.
local function write_all(command, key, values)
  for start = 1, #values, CHUNK do
    redis.call(command, key, unpack(values, start, math.min(start + CHUNK - 1, #values)))
  end
end

-- Big numbers ---------------------------------------------------------------------------------------------------
-- Tickets and versions go up to 2^63; Lua counts to 2^53. They are text of 19 digits, which compares like numbers.

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
local STATE, STATE_SIZE = '<c19ddddddddddd', 107

-- `now` is the fleet's time, and `wall` what the store's clock showed then. `leases` is how many EXPIRING must have.
-- `catch`, `due` and `check` are NEVER when there is nothing to wait for.
local function pack_state(S)
  return struct.pack(
    STATE, S.unused, S.term, S.threshold, S.now, S.wall, S.due, S.check, S.catch, S.serial, S.leases, S.expired,
    S.released
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
  local unused, term, threshold, now, wall, due, check, catch, serial, leases, expired, released =
    struct.unpack(STATE, packed)
  return {
    keys = keys, was = packed, unused = unused, term = term, threshold = threshold, now = now, wall = wall, due = due,
    check = check, catch = catch, serial = serial, leases = leases, expired = expired, released = released,
  }
end

local function save_state(S)
  local packed = pack_state(S)
  if packed ~= S.was then
    redis.call('HSET', S.keys[FLEET], 'state', packed)
  end
end

-- Picks ---------------------------------------------------------------------------------------------------------

-- Return how many pools can take a task, and how many green and yellow tokens they have.
local function tokens(S)
  local ranked, threshold = S.keys[RANKED], exact(S.threshold)
  return redis.call('ZCARD', ranked), redis.call('ZCOUNT', ranked, '-inf', '(' .. threshold),
    redis.call('ZCOUNT', ranked, '-inf', threshold)
end

-- Return the rule's step. Integers decide.
local function learning_step(S)
  local pools, green, yellow = tokens(S)
  local rise = yellow <= 1 and 1 or 0
  local fall = (pools - green) * S.denominator <= pools * S.numerator and 1 or 0
  return rise - fall
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

-- Choose one of the pools with the smallest estimate, none of those to exclude. There may be thousands of pools, so
-- only the places of those to exclude are looked up.
local function choose(S, roll, exclude)
  local ranked, start = S.keys[RANKED], 0
  local taken = {}
  for _, pool in ipairs(exclude) do
    taken[#taken + 1] = redis.call('ZRANK', ranked, pool) or nil
  end
  table.sort(taken)
  while true do
    local head = redis.call('ZRANGE', ranked, start, start, 'WITHSCORES')
    if not head[1] then
      return nil
    end
    local stop = redis.call('ZCOUNT', ranked, '-inf', head[2])
    local here = {}
    for _, place in ipairs(taken) do
      if place >= start and place < stop then
        here[#here + 1] = place
      end
    end
    if #here < stop - start then
      local place = start + roll(stop - start - #here)
      for _, other in ipairs(here) do
        place = place + (other <= place and 1 or 0)
      end
      return redis.call('ZRANGE', ranked, place, place)[1]
    end
    start = stop
  end
end

-- Records -------------------------------------------------------------------------------------------------------

local HOT_RECORD, COLD_RECORD = '<c19dd', '<ddddc19c19'

local function parse_hot(value)
  local ticket, estimate, open = struct.unpack(HOT_RECORD, value)
  return {estimate = estimate >= 0 and estimate or nil, next_ticket = ticket, open = open}
end

local function read_hot(S, pool)
  local value = redis.call('HGET', S.keys[HOT], pool)
  return value and parse_hot(value) or nil
end

local function pack_hot(hot)
  return struct.pack(HOT_RECORD, hot.next_ticket, hot.estimate or -1, hot.open)
end

local function write_hot(S, pool, hot)
  redis.call('HSET', S.keys[HOT], pool, pack_hot(hot))
end

local function parse_cold(value)
  local serial, heard, tasks, leaving, incarnation, sequence = struct.unpack(COLD_RECORD, value)
  return {
    serial = serial, heard = heard, tasks = tasks, leaving = leaving == 1, incarnation = incarnation,
    sequence = sequence,
  }
end

local function read_cold(S, pool)
  local value = redis.call('HGET', S.keys[COLD], pool)
  return value and parse_cold(value) or nil
end

local function write_cold(S, pool, cold)
  redis.call('HSET', S.keys[COLD], pool, struct.pack(
    COLD_RECORD, cold.serial, cold.heard, cold.tasks, cold.leaving and 1 or 0, cold.incarnation, cold.sequence
  ))
end

-- Return the capacity, nil if there is no limit, the address, and the incarnation of the agent that said so. All are
-- nil if no agent has.
local function read_place(S, pool)
  local value = redis.call('HGET', S.keys[PLACES], pool)
  if not value then
    return nil, nil, nil
  end
  local incarnation, capacity, address = string.match(value, '^(%d+) (%S+) (.*)$')
  return tonumber(capacity), address, incarnation
end

local function is_draining(S, pool)
  local order = redis.call('HGET', S.keys[ORDERS], pool)
  return order and string.sub(order, -1) == '1'
end

-- Set the estimate of a pool, nil if it is not a member, and rank it if it can take a task. The caller keeps `hot`.
local function estimate_as(S, pool, hot, estimate)
  local capacity = read_place(S, pool)
  hot.estimate = estimate
  if estimate and not (capacity and estimate >= capacity) then
    redis.call('ZADD', S.keys[RANKED], exact(estimate), pool)
  else
    redis.call('ZREM', S.keys[RANKED], pool)
  end
end

local function take_out(S, pool, hot)
  estimate_as(S, pool, hot, nil)
  write_hot(S, pool, hot)
end

-- Make the pool a member with its newest report, unless it drains or leaves.
local function put_in(S, pool, hot, cold)
  if cold.leaving or is_draining(S, pool) then
    take_out(S, pool, hot)
    return
  end
  estimate_as(S, pool, hot, cold.tasks + hot.open)
  write_hot(S, pool, hot)
end

-- Tickets -------------------------------------------------------------------------------------------------------

local function new_ticket(S, pool, hot, expires)
  local ticket = hot.next_ticket
  hot.next_ticket = next_big(ticket)
  hot.open = hot.open + 1
  if hot.next_ticket > S.unused then
    S.unused = hot.next_ticket
  end
  redis.call('ZADD', S.keys[OPEN], 0, pool .. '/' .. ticket)
  redis.call('ZADD', S.keys[EXPIRING], exact(expires), pool .. ' ' .. ticket)
  S.leases = S.leases + 1
  S.due = math.min(S.due, expires)
  return ticket
end

-- Give back the place of a ticket. Return 1, or 0 if it is not open.
local function close(S, pool, ticket)
  if redis.call('ZREM', S.keys[OPEN], pool .. '/' .. ticket) == 0 then
    return 0
  end
  local hot = read_hot(S, pool) or error('CORRUPT: a ticket has no record')
  hot.open = hot.open - 1
  if hot.estimate then
    estimate_as(S, pool, hot, hot.estimate - 1)
  end
  write_hot(S, pool, hot)
  return 1
end

local function oldest_ticket(S, pool, hot)
  if hot.open == 0 then
    return hot.next_ticket
  end
  local found = redis.call('ZRANGEBYLEX', S.keys[OPEN], '[' .. pool .. '/', '[' .. pool .. '/:', 'LIMIT', 0, 1)
  return found[1] and string.sub(found[1], #pool + 2) or error('CORRUPT: an open ticket is missing')
end

-- Time ----------------------------------------------------------------------------------------------------------

-- Return the earliest time of a sorted set and its member; NEVER if the set is empty.
local function head_time(S, set)
  local head = redis.call('ZRANGE', S.keys[set], 0, 0, 'WITHSCORES')
  return tonumber(head[2]) or NEVER, head[1]
end

local function expire_places(S)
  for _ = 1, MAX_EXPIRED do
    local due, head = head_time(S, EXPIRING)
    if due > S.now then
      return due
    end
    redis.call('ZREM', S.keys[EXPIRING], head)
    S.leases = S.leases - 1
    local pool, ticket = string.match(head, '^(%S+) (%d+)$')
    S.expired = S.expired + close(S, pool, ticket)
  end
  return S.now -- the next call goes on
end

-- Places whose leases are lost would be kept for ever.
local function check_leases(S)
  if redis.call('ZCARD', S.keys[EXPIRING]) ~= S.leases then
    error('CORRUPT: leases are missing')
  end
end

local function forget_answers(S)
  for _ = 1, MAX_EXPIRED do
    local due, head = head_time(S, ORDER)
    if due > S.now then
      return due
    end
    redis.call('ZREM', S.keys[ORDER], head)
    redis.call('HDEL', S.keys[ANSWERS], head)
  end
  return S.now
end

-- Forget the places of pools that never sent anything.
local function forget_places(S)
  if redis.call('HLEN', S.keys[PLACES]) > 2 * redis.call('HLEN', S.keys[COLD]) + 100 then
    for _, pool in ipairs(redis.call('HKEYS', S.keys[PLACES])) do
      if redis.call('HEXISTS', S.keys[COLD], pool) == 0 then
        redis.call('HDEL', S.keys[PLACES], pool)
      end
    end
  end
end

local function drop_silent_pools(S)
  S.check = NEVER
  local all, silent = redis.call('HGETALL', S.keys[COLD]), {}
  for index = 1, #all, 2 do
    local cold = parse_cold(all[index + 1])
    if cold.heard + S.silence <= S.now then
      silent[#silent + 1] = {all[index], cold.serial}
    else
      S.check = math.min(S.check, cold.heard + S.silence)
    end
  end
  table.sort(silent, function(one, other) return one[2] < other[2] end)
  for _, each in ipairs(silent) do
    local pool = each[1]
    local hot = read_hot(S, pool) or error('CORRUPT: half a record')
    take_out(S, pool, hot)
    if hot.open == 0 then
      redis.call('HDEL', S.keys[COLD], pool)
      redis.call('HDEL', S.keys[HOT], pool)
    else
      S.check = math.min(S.check, S.now + S.lease) -- by then, its tickets have expired
    end
  end
  forget_places(S)
end

local function tick(S)
  if S.now >= S.due then
    check_leases(S)
    local places, answers = expire_places(S), forget_answers(S)
    S.due = math.min(places, answers)
  end
  if S.now >= S.check then
    drop_silent_pools(S)
  end
end

-- Begin a later term: nothing that was given out and is forgotten here gets the same number again.
local function begin_term(S, term)
  local first = first_of_term(term)
  S.term, S.unused = term, first
  local all, renewed = redis.call('HGETALL', S.keys[HOT]), {}
  for index = 1, #all, 2 do
    local hot = parse_hot(all[index + 1])
    hot.next_ticket = first
    renewed[#renewed + 1] = all[index]
    renewed[#renewed + 1] = pack_hot(hot)
  end
  write_all('HSET', S.keys[HOT], renewed)
end

-- Raise the threshold to the median number of tasks.
local function catch_up(S)
  local middle = math.floor((redis.call('ZCARD', S.keys[RANKED]) - 1) / 2)
  if middle >= 0 then
    local median = tonumber(redis.call('ZRANGE', S.keys[RANKED], middle, middle, 'WITHSCORES')[2])
    S.threshold = math.max(S.threshold, math.min(median, MAX_COUNT))
  end
end

-- Calls ---------------------------------------------------------------------------------------------------------

local function store_time()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1e6 + tonumber(now[2])
end

-- Make a function of the store from one of the state. All take: now (empty: the store's own time), lease, silence,
-- memory, numerator and denominator of alpha; then what the call is about. All return the term first.
local function call(action)
  return function(keys, args)
    local S = load_state(keys)
    if not S then
      return redis.error_reply('NOSTATE The store does not know the fleet.')
    end
    S.lease, S.silence, S.memory = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
    S.numerator, S.denominator = tonumber(args[5]), tonumber(args[6])
    local reply = action(S, args)
    save_state(S)
    if not reply.err then
      table.insert(reply, 1, S.term)
    end
    return reply
  end
end

-- The same for calls that let time pass, by as much as the store's clock has gone on since the last one.
local function timed(action)
  return call(function(S, args)
    local wall = args[1] ~= '' and tonumber(args[1]) or store_time()
    S.now, S.wall = S.now + math.max(0, math.min(wall - S.wall, math.max(MAX_STEP, S.silence))), wall
    tick(S)
    return action(S, args)
  end)
end

local function pick(S, roll, exclude)
  local pool = choose(S, roll, exclude)
  if not pool then
    return nil
  end
  local step = learning_step(S)
  local hot = read_hot(S, pool) or error('CORRUPT: a member has no record')
  local above = hot.estimate - S.threshold
  local color = above < 0 and 'green' or above == 0 and 'yellow' or ''
  estimate_as(S, pool, hot, hot.estimate + 1)
  local expires = S.now + S.lease
  local ticket = new_ticket(S, pool, hot, expires)
  write_hot(S, pool, hot)
  if S.threshold + step >= 0 and S.threshold + step <= MAX_COUNT then
    S.threshold = S.threshold + step
  end
  local _, address = read_place(S, pool)
  if not address then
    error('CORRUPT: a member has no address')
  end
  return {pool, ticket, exact(expires), color, exact(S.threshold), address}
end

-- Return pool, ticket, time left, color, threshold and address of each pick.
local function placements(S, picks)
  local reply = {'placed'}
  for _, each in ipairs(picks) do
    for index, value in ipairs(each) do
      reply[#reply + 1] = index == 3 and exact(math.max(0, tonumber(value) - S.now)) or value
    end
  end
  return reply
end

local function remember(S, key, request, picks)
  if redis.call('HLEN', S.keys[ANSWERS]) >= MAX_ANSWERS then
    local oldest = redis.call('ZPOPMIN', S.keys[ORDER])[1] or error('CORRUPT: the answers have no order')
    redis.call('HDEL', S.keys[ANSWERS], oldest)
  end
  local expires = S.now + S.memory
  redis.call('HSET', S.keys[ANSWERS], key, cjson.encode({request, picks}))
  redis.call('ZADD', S.keys[ORDER], exact(expires), key)
  S.due = math.min(S.due, expires)
end

-- count, key (empty: none), request (what the same key must come with again), seed, number of pools to exclude, these
-- pools, random numbers
local function pick_many(S, args)
  local count, key, request, excluded = tonumber(args[7]), args[8], args[9], tonumber(args[11])
  local answer = key ~= '' and redis.call('HGET', S.keys[ANSWERS], key)
  if answer then
    local known = cjson.decode(answer)
    return known[1] == request and placements(S, known[2]) or {'reused'}
  end
  if redis.call('ZCARD', S.keys[EXPIRING]) + count > MAX_PLACES then
    return {'crowded'}
  end
  local exclude, numbers = {}, {}
  for index = 12, 11 + excluded do
    exclude[#exclude + 1] = args[index]
  end
  for index = 12 + excluded, #args do
    numbers[#numbers + 1] = args[index]
  end
  local roll, picks, threshold = dice(tonumber(args[10]), numbers), {}, S.threshold
  for _ = 1, count do
    local picked = pick(S, roll, exclude)
    if not picked then
      S.threshold = threshold
      for _, each in ipairs(picks) do
        close(S, each[1], each[2])
        redis.call('ZREM', S.keys[EXPIRING], each[1] .. ' ' .. each[2])
        S.leases = S.leases - 1
      end
      return {redis.call('HLEN', S.keys[COLD]) > 0 and 'unavailable' or 'empty'}
    end
    picks[#picks + 1] = picked
  end
  if key ~= '' then
    remember(S, key, request, picks)
  end
  return placements(S, picks)
end

-- pool, kind, incarnation, sequence, tasks, version, how many ranges, first and last ticket of each. The numbers are
-- text of 19 digits. Return the threshold, its version and the oldest ticket in reply to a heartbeat; 'unplaced' if the
-- agent must register first; 'outdated' if one that started later is known.
local function receive(S, args)
  local pool, kind, incarnation, sequence = args[7], args[8], args[9], args[10]
  local _, address, registered = read_place(S, pool)
  local hot, cold = read_hot(S, pool), read_cold(S, pool)
  if not address or (registered ~= incarnation and not cold) then
    return {'unplaced'}
  end
  if not (hot and cold) then
    if redis.call('HLEN', S.keys[COLD]) >= MAX_POOLS then
      return too_many_pools()
    end
    S.serial = S.serial + 1
    hot, cold = {next_ticket = S.unused, open = 0}, {serial = S.serial, incarnation = '', sequence = big('0')}
  end
  if incarnation < registered or incarnation < cold.incarnation then
    return {'outdated'}
  end
  if incarnation > cold.incarnation or sequence > cold.sequence then
    cold.incarnation, cold.sequence, cold.heard = incarnation, sequence, S.now
    S.check = math.min(S.check, S.now + S.silence)
    for index = 14, #args, 2 do
      if hot.open == 0 then
        break
      end
      hot.open = hot.open - redis.call(
        'ZREMRANGEBYLEX', S.keys[OPEN], '[' .. pool .. '/' .. args[index], '[' .. pool .. '/' .. args[index + 1]
      )
    end
    cold.tasks, cold.leaving = tonumber(args[11]), kind == 'leave'
    write_cold(S, pool, cold)
    local version = args[12]
    if version > hot.next_ticket and term_of(version) < MAX_TERM then -- of a dispatcher that is not known here
      write_hot(S, pool, hot)
      begin_term(S, term_of(version) + 1)
      hot = read_hot(S, pool)
    end
    put_in(S, pool, hot, cold)
  end
  if kind ~= 'heartbeat' then
    return {}
  end
  return {exact(S.threshold), hot.next_ticket, oldest_ticket(S, pool, hot)}
end

local function release(S, args)
  S.released = S.released + close(S, args[7], args[8])
  return {}
end

-- pool, incarnation, capacity ('-': no limit), address. Return 'outdated' if an agent that started later is known. A
-- pool that was silent for so long that it is forgotten may start over with an earlier one, as after a rollback.
local function register(S, args)
  local pool, incarnation = args[7], args[8]
  local cold, _, _, registered = read_cold(S, pool), read_place(S, pool)
  if cold and (incarnation < cold.incarnation or (registered and incarnation < registered)) then
    return {'outdated'}
  end
  if redis.call('HEXISTS', S.keys[PLACES], pool) == 0 and redis.call('HLEN', S.keys[PLACES]) >= MAX_POOLS then
    return too_many_pools()
  end
  redis.call('HSET', S.keys[PLACES], pool, incarnation .. ' ' .. args[9] .. ' ' .. args[10])
  local hot = read_hot(S, pool)
  if hot then
    estimate_as(S, pool, hot, hot.estimate)
  end
  return {}
end

-- Forget the ends of drains, if there are too many orders: an older drain of such a pool could come back.
local function forget_orders(S)
  if redis.call('HLEN', S.keys[ORDERS]) < MAX_POOLS then
    return
  end
  local all = redis.call('HGETALL', S.keys[ORDERS])
  for index = 1, #all, 2 do
    if string.sub(all[index + 1], -1) == '0' then
      redis.call('HDEL', S.keys[ORDERS], all[index])
    end
  end
end

-- pool, version, 1 or 0: an operator's order to drain the pool, or to end that. The newest counts, also if a dispatcher
-- repeats it after the store has lost its last writes. A pool that is silent, but has clients on their way, does not
-- come back by the end of a drain.
local function order(S, args)
  local pool, version, drained = args[7], args[8], args[9]
  local known = redis.call('HGET', S.keys[ORDERS], pool)
  if known and version <= string.sub(known, 1, 19) then
    return {}
  end
  if not known then
    forget_orders(S)
    if redis.call('HLEN', S.keys[ORDERS]) >= MAX_POOLS then
      return too_many_pools()
    end
  end
  redis.call('HSET', S.keys[ORDERS], pool, version .. ' ' .. drained)
  local hot, cold = read_hot(S, pool), read_cold(S, pool)
  if hot and drained == '1' then
    take_out(S, pool, hot)
  elseif hot and cold and cold.heard + S.silence > S.now then
    put_in(S, pool, hot, cold)
  end
  return {}
end

-- pool, grace, and the incarnation and sequence of the last message that came through the broken connection. If the
-- pool has sent something since, it is connected elsewhere.
local function disconnect(S, args)
  local pool, cold = args[7], read_cold(S, args[7])
  if cold and cold.incarnation == args[9] and cold.sequence == args[10] then
    cold.heard = math.min(cold.heard, S.now + tonumber(args[8]) - S.silence)
    S.check = math.min(S.check, cold.heard + S.silence)
    write_cold(S, pool, cold)
    tick(S)
  end
  return {}
end

local function pass_time(S)
  if S.now >= S.catch then
    S.catch = NEVER
    catch_up(S)
  end
  return {}
end

-- Return all that is known, as JSON.
local function state(S)
  local pools, all = {}, redis.call('HGETALL', S.keys[COLD])
  for index = 1, #all, 2 do
    local pool, cold = all[index], parse_cold(all[index + 1])
    local hot, capacity, address = read_hot(S, pool) or error('CORRUPT: half a record'), read_place(S, pool)
    pools[#pools + 1] = {
      serial = cold.serial, name = pool, tasks = exact(cold.tasks), open = hot.open, leaving = cold.leaving,
      estimate = hot.estimate and exact(hot.estimate), capacity = capacity and exact(capacity),
      address = address or error('CORRUPT: a pool has no address'),
      draining = is_draining(S, pool) or false, next_ticket = hot.next_ticket,
      full = capacity ~= nil and hot.estimate ~= nil and hot.estimate >= capacity,
    }
  end
  local _, green, yellow = tokens(S)
  return {cjson.encode({
    threshold = exact(S.threshold), green = green, yellow = yellow,
    expired = exact(S.expired), released = exact(S.released), pools = pools,
    orders = redis.call('HGETALL', S.keys[ORDERS]),
  })}
end

local function server_run()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
end

-- now, threshold, term, signing key, heartbeat, a broken state (empty: none); pool, version and 1 or 0 of each order
-- that is known. Make the state unless it is there. Begin a new term if the server is not the one that had the state, since
-- the last writes may be lost. Return the term and the signing key.
local function open_fleet(keys, args)
  local key, run, packed = unpack(redis.call('HMGET', keys[FLEET], 'key', 'run', 'state'))
  local now, term = args[1] ~= '' and tonumber(args[1]) or store_time(), tonumber(args[3])
  local made = not (key and packed and packed ~= args[6])
  if made then
    redis.call('DEL', unpack(keys))
    key = key or args[4]
    redis.call('HSET', keys[FLEET], 'key', key, 'run', server_run(), 'state', pack_state({
      threshold = tonumber(args[2]), term = term, unused = first_of_term(term), now = now, wall = now, due = NEVER,
      check = NEVER, catch = now + 2 * tonumber(args[5]), serial = 0, leases = 0, expired = 0, released = 0,
    }))
  end
  local S = load_state(keys)
  if made or run ~= server_run() then
    redis.call('HSET', keys[FLEET], 'run', server_run())
    S.silence = 0 -- orders bring no pool back: the next message of each does
    for index = 7, #args, 3 do
      order(S, {[7] = args[index], [8] = args[index + 1], [9] = args[index + 2]})
    end
  end
  if not made and run ~= server_run() and S.term < MAX_TERM then
    begin_term(S, math.min(math.max(S.term + 1, term), MAX_TERM))
  end
  save_state(S)
  return {S.term, key}
end

redis.register_function('evenly_2_open', open_fleet)
redis.register_function('evenly_2_pick', timed(pick_many))
redis.register_function('evenly_2_receive', timed(receive))
redis.register_function('evenly_2_release', timed(release))
redis.register_function('evenly_2_register', call(register))
redis.register_function('evenly_2_order', call(order))
redis.register_function('evenly_2_disconnect', timed(disconnect))
redis.register_function('evenly_2_tick', timed(pass_time))
redis.register_function('evenly_2_state', call(state))
