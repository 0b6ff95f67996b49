-- The fleet: what `core/protocol/dispatcher_peer.py`, `answers.py` and `tickets.py` decide, one call at a time.
--
-- HOT      pool -> packed next_ticket, estimate, open_tickets; the estimate is -1 if the pool is not a member
-- COLD     pool -> packed serial, heard, tasks, leaving, epoch, incarnation, sequence; records are in order of serial
-- PLACES   pool -> 'capacity address'; the capacity is '-' if there is no limit
-- OPEN     a sorted set of 'pool/ticket', all with score 0, so that it is sorted by text
-- EXPIRING a sorted set of 'pool ticket' by the end of the lease; dispatchers may have different leases
-- ANSWERS  request key -> JSON of the request and the picks
-- ORDER    a sorted set of the keys of the answers, by the time until which they are kept

local MAX_POOLS, MAX_ANSWERS, MAX_TERM = 10000, 100000, 2147483647
local MAX_PLACES = 500000 -- picks within one lease
local MAX_EXPIRED = 500 -- places to give back in one call, so that no call takes long

-- Return a whole number as text. Lua's own conversion rounds to 14 digits.
local function exact(number)
  return string.format('%d', number)
end

local function too_many_pools()
  return redis.error_reply('LIMIT There can be at most ' .. MAX_POOLS .. ' pools.')
end

-- Records -------------------------------------------------------------------------------------------------------

local HOT_RECORD, COLD_RECORD = '<c19dd', '<ddddc19c19c19'

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
  local serial, heard, tasks, leaving, epoch, incarnation, sequence = struct.unpack(COLD_RECORD, value)
  return {
    serial = serial, heard = heard, tasks = tasks, leaving = leaving == 1, epoch = epoch, incarnation = incarnation,
    sequence = sequence,
  }
end

local function read_cold(S, pool)
  local value = redis.call('HGET', S.keys[COLD], pool)
  return value and parse_cold(value) or nil
end

local function write_cold(S, pool, cold)
  redis.call('HSET', S.keys[COLD], pool, struct.pack(
    COLD_RECORD, cold.serial, cold.heard, cold.tasks, cold.leaving and 1 or 0, cold.epoch, cold.incarnation,
    cold.sequence
  ))
end

-- Return the capacity, nil if there is no limit, and the address.
local function read_place(S, pool)
  local value = redis.call('HGET', S.keys[PLACES], pool)
  if not value then
    return nil, ''
  end
  local capacity, address = string.match(value, '^(%S+) (.*)$')
  return tonumber(capacity), address
end

local function estimates(S, pools)
  local found = {}
  for start = 1, #pools, CHUNK do
    local part = {unpack(pools, start, math.min(start + CHUNK - 1, #pools))}
    for _, value in ipairs(redis.call('HMGET', S.keys[HOT], unpack(part))) do
      found[#found + 1] = value and parse_hot(value).estimate or error('CORRUPT: a member has no record')
    end
  end
  return found
end

-- Change the estimate in the record and the tokens with it.
local function estimate_as(S, pool, hot, estimate, capacity)
  set_estimate(S, pool, hot.estimate, estimate, capacity)
  hot.estimate = estimate
end

local function take_out(S, pool, hot)
  if hot.estimate then
    leave(S, pool, hot.estimate, (read_place(S, pool)))
    hot.estimate = nil
  end
  write_hot(S, pool, hot)
end

-- Make the pool a member with its newest report, unless it drains or leaves.
local function put_in(S, pool, hot, cold)
  if cold.leaving or redis.call('SISMEMBER', S.keys[DRAINING], pool) == 1 then
    take_out(S, pool, hot)
    return
  end
  if not hot.estimate then
    join(S, pool)
  end
  estimate_as(S, pool, hot, cold.tasks + hot.open, (read_place(S, pool)))
  write_hot(S, pool, hot)
  if cold.epoch == S.epoch then
    flag(S, UNSETTLED, pool, S.unsettled > 0, false)
  end
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
    estimate_as(S, pool, hot, math.max(hot.estimate - 1, 0), (read_place(S, pool)))
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
    local pool, ticket = string.match(head, '^(%S+) (%d+)$')
    S.expired = S.expired + close(S, pool, ticket)
  end
  return S.now -- the next call goes on
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
    local places, answers = expire_places(S), forget_answers(S)
    S.due = math.min(places, answers)
  end
  if S.now >= S.check then
    drop_silent_pools(S)
  end
  if S.unsettled == 0 then
    S.since = NEVER
  elseif S.since == NEVER then
    S.since = S.now
  elseif S.now >= S.since + S.silence then
    S.since = NEVER
    settle(S)
  end
end

-- Begin a later term: nothing that was given out and is forgotten here gets the same number again.
local function begin_term(S, term)
  local first = first_of_term(term)
  restart(S, S.threshold, first, estimates)
  S.unused, S.since = first, NEVER
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
  if S.members == 0 then
    return
  end
  local sorted = estimates(S, list(S, MEMBERS))
  table.sort(sorted)
  local median = math.min(sorted[math.floor((#sorted - 1) / 2) + 1], MAX_COUNT)
  if median > S.threshold then
    restart(S, median, next_big(S.epoch), estimates)
  end
end

-- Calls ---------------------------------------------------------------------------------------------------------

local function store_time()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1e6 + tonumber(now[2])
end

-- Make a function of the store from one of the state. All take: now (empty: the store's own time), lease, silence,
-- memory, numerator and denominator of alpha; then what the call is about. All return the epoch first.
local function call(action)
  return function(keys, args)
    local S = load_state(keys)
    if not S then
      return redis.error_reply('NOSTATE The store does not know the fleet.')
    end
    S.asked = args[1] ~= '' and tonumber(args[1]) or store_time()
    S.lease, S.silence, S.memory = tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
    S.numerator, S.denominator = tonumber(args[5]), tonumber(args[6])
    local reply = action(S, args)
    save_state(S)
    if not reply.err then
      table.insert(reply, 1, S.epoch)
    end
    return reply
  end
end

-- The same for calls that let time pass. Where time goes back, the latest counts.
local function timed(action)
  return call(function(S, args)
    S.now = math.max(S.now, S.asked)
    tick(S)
    return action(S, args)
  end)
end

local function pick(S, roll, exclude)
  local threshold = S.threshold
  local pool = choose(S, roll, exclude)
  if not pool then
    return nil
  end
  local step = learning_step(S, S.numerator, S.denominator)
  local hot = read_hot(S, pool) or error('CORRUPT: a member has no record')
  local capacity, address = read_place(S, pool)
  local before = hot.estimate
  estimate_as(S, pool, hot, before + 1, capacity)
  local expires = S.now + S.lease
  local ticket = new_ticket(S, pool, hot, expires)
  write_hot(S, pool, hot)
  learn(S, step, estimates)
  local color = before < threshold and 'green' or before == threshold and 'yellow' or ''
  return {pool, ticket, exact(expires), color, exact(threshold), address}
end

-- Return pool, ticket, time left, color, threshold and address of each pick.
local function placements(S, picks)
  local reply = {'placed'}
  for _, each in ipairs(picks) do
    for index, value in ipairs(each) do
      reply[#reply + 1] = index == 3 and exact(math.max(0, tonumber(value) - S.asked)) or value
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
    exclude[args[index]] = true
  end
  for index = 12 + excluded, #args do
    numbers[#numbers + 1] = args[index]
  end
  local roll, picks = dice(tonumber(args[10]), numbers), {}
  for _ = 1, count do
    local picked = pick(S, roll, exclude)
    if not picked then
      for _, each in ipairs(picks) do
        close(S, each[1], each[2])
        redis.call('ZREM', S.keys[EXPIRING], each[1] .. ' ' .. each[2])
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

local function notice(S, pool, hot)
  return {'tell', exact(S.threshold), oldest_ticket(S, pool, hot)}
end

-- A record for a pool that is new here. Tickets that it has seen elsewhere are not used again.
local function new_record(S, args)
  local ticket = S.unused
  if #args > 13 then
    local seen = next_big(args[#args])
    if seen < first_of_term(term_of(S.epoch) + 1) and seen > ticket then -- a later term begins by itself
      ticket = seen
    end
  end
  S.serial = S.serial + 1
  return {next_ticket = ticket, open = 0}, {serial = S.serial, incarnation = '', sequence = big('0')}
end

-- pool, kind, incarnation, sequence, tasks, epoch, how many ranges, first and last ticket of each. The numbers are
-- text of 19 digits. Return 'tell', the threshold and the oldest ticket if the pool is to be answered.
local function receive(S, args)
  local pool, kind, incarnation, sequence = args[7], args[8], args[9], args[10]
  local hot, cold = read_hot(S, pool), read_cold(S, pool)
  if not (hot and cold) then
    if redis.call('HLEN', S.keys[COLD]) >= MAX_POOLS then
      return too_many_pools()
    end
    hot, cold = new_record(S, args)
  end
  if incarnation < cold.incarnation or (incarnation == cold.incarnation and sequence <= cold.sequence) then
    return kind == 'heartbeat' and hot.estimate and notice(S, pool, hot) or {'old'}
  end
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
  cold.tasks, cold.epoch, cold.leaving = tonumber(args[11]), args[12], kind == 'leave'
  write_cold(S, pool, cold)
  if cold.epoch > S.epoch and term_of(cold.epoch) < MAX_TERM then -- from a dispatcher that is not known here
    write_hot(S, pool, hot)
    begin_term(S, term_of(cold.epoch) + 1)
    hot = read_hot(S, pool)
  end
  put_in(S, pool, hot, cold)
  return kind == 'heartbeat' and notice(S, pool, hot) or {'new'}
end

local function release(S, args)
  S.released = S.released + close(S, args[7], args[8])
  return {}
end

-- pool, capacity ('-': no limit), address
local function register(S, args)
  local pool = args[7]
  local old = read_place(S, pool)
  if redis.call('HEXISTS', S.keys[PLACES], pool) == 0 and redis.call('HLEN', S.keys[PLACES]) >= MAX_POOLS then
    return too_many_pools()
  end
  redis.call('HSET', S.keys[PLACES], pool, args[8] .. ' ' .. args[9])
  local new, hot = tonumber(args[8]), read_hot(S, pool)
  local estimate = hot and hot.estimate
  flag(S, FULL, pool, estimate and old and estimate >= old, estimate and new and estimate >= new)
  return {}
end

local function drain(S, args)
  local pool = args[7]
  if redis.call('SADD', S.keys[DRAINING], pool) == 1 and redis.call('SCARD', S.keys[DRAINING]) > MAX_POOLS then
    redis.call('SREM', S.keys[DRAINING], pool)
    return too_many_pools()
  end
  local hot = read_hot(S, pool)
  if hot then
    take_out(S, pool, hot)
  end
  return {}
end

-- A pool that is silent, but has clients on their way, does not come back by this.
local function undrain(S, args)
  local pool = args[7]
  redis.call('SREM', S.keys[DRAINING], pool)
  local hot, cold = read_hot(S, pool), read_cold(S, pool)
  if hot and cold and cold.heard + S.silence > S.now then
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

-- Return the threshold, and the oldest ticket of each of the pools; empty for those that are not members.
local function tell(S, args)
  local reply = {exact(S.threshold)}
  for index = 7, #args do
    local hot = read_hot(S, args[index])
    reply[#reply + 1] = hot and hot.estimate and oldest_ticket(S, args[index], hot) or ''
  end
  return reply
end

-- Return all that is known, as JSON.
local function state(S)
  local pools, all = {}, redis.call('HGETALL', S.keys[COLD])
  for index = 1, #all, 2 do
    local pool, cold = all[index], parse_cold(all[index + 1])
    local hot, capacity, address = read_hot(S, pool) or error('CORRUPT: half a record'), read_place(S, pool)
    pools[#pools + 1] = {
      serial = cold.serial, name = pool, tasks = exact(cold.tasks), open = hot.open, leaving = cold.leaving,
      estimate = hot.estimate and exact(hot.estimate), capacity = capacity and exact(capacity), address = address,
      draining = redis.call('SISMEMBER', S.keys[DRAINING], pool) == 1, next_ticket = hot.next_ticket,
      full = redis.call('SISMEMBER', S.keys[FULL], pool) == 1,
    }
  end
  return {cjson.encode({
    threshold = exact(S.threshold), settled = S.unsettled == 0, green = S.green, yellow = S.yellow,
    expired = exact(S.expired), released = exact(S.released), pools = pools,
    drained = redis.call('SMEMBERS', S.keys[DRAINING]),
  })}
end

local function server_run()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
end

-- now, threshold, term, signing key, heartbeat, a broken state (empty: none), the pools that are known to drain. Make
-- the state unless it is there; begin a new term if the server is not the one that had the state, since the last
-- writes may be lost. In both cases the pools drain: at no other time, since another dispatcher may have ended that.
-- Return the epoch and the signing key.
local function open_fleet(keys, args)
  local key, run, packed = unpack(redis.call('HMGET', keys[FLEET], 'key', 'run', 'state'))
  if key and packed and packed ~= args[6] then
    local S = load_state(keys)
    if run ~= server_run() then
      redis.call('HSET', keys[FLEET], 'run', server_run())
      for index = 7, #args do
        drain(S, {[7] = args[index]})
      end
      if term_of(S.epoch) < MAX_TERM then
        begin_term(S, term_of(S.epoch) + 1)
      end
      save_state(S)
    end
    return {S.epoch, key}
  end
  local now = args[1] ~= '' and tonumber(args[1]) or store_time()
  local first = first_of_term(tonumber(args[3]))
  local S = {
    threshold = tonumber(args[2]), epoch = first, unused = first, now = now, due = NEVER, check = NEVER,
    since = NEVER, catch = now + 2 * tonumber(args[5]), serial = 0, expired = 0, released = 0, members = 0,
    green = 0, yellow = 0, unsettled = 0, full = 0,
  }
  redis.call('DEL', unpack(keys))
  redis.call('HSET', keys[FLEET], 'key', key or args[4], 'run', server_run(), 'state', pack_state(S))
  for index = 7, #args do
    redis.call('SADD', keys[DRAINING], args[index])
  end
  return {first, key or args[4]}
end

redis.register_function('evenly_1_open', open_fleet)
redis.register_function('evenly_1_pick', timed(pick_many))
redis.register_function('evenly_1_receive', timed(receive))
redis.register_function('evenly_1_release', timed(release))
redis.register_function('evenly_1_register', call(register))
redis.register_function('evenly_1_drain', call(drain))
redis.register_function('evenly_1_undrain', call(undrain))
redis.register_function('evenly_1_disconnect', timed(disconnect))
redis.register_function('evenly_1_tick', timed(pass_time))
redis.register_function('evenly_1_tell', call(tell))
redis.register_function('evenly_1_state', call(state))
