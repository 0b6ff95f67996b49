// The aggregate chain of one system, as in evenly.sim.kernels.aggregate: level counts, one event at a time.
//
// NVRTC compiles this file for the device, where each thread runs a replication. g++ compiles it for the tests, which
// compare it with the Numba kernel, event by event. It includes nothing, because NVRTC has no standard headers.
//
// Rates are whole numbers of 2^-shift, so that all decisions are made on integers. Time passes by its mean, 1 / rate
// per event: averages over time keep their expectation, and vary less.
//
// Define EVENLY_LEVELS, and EVENLY_IMBALANCE to record the imbalance.

#ifdef __CUDACC__
#define EVENLY_FN __device__ __forceinline__
#define EVENLY_PRAGMA(text) _Pragma(#text)
#define EVENLY_UNROLL(times) EVENLY_PRAGMA(unroll times)
#else
#define EVENLY_FN inline
#define EVENLY_UNROLL(times)
#endif

namespace evenly {

constexpr int LEVELS = EVENLY_LEVELS;  // a pool has fewer tasks than this, minus two
constexpr int CHUNK = 128;             // events between two looks at the clock, where threads of a warp meet again
constexpr int MAX_SAMPLED = 4;

enum Policy { THRESHOLD = 0, JSQ = 1, POWER_OF_D = 2, RANDOM = 3 };

struct Point {  // a scenario
  int policy, pools, learning;
  int fall_at;         // the threshold falls when at most this many pools have reached it
  int highest;         // the threshold rises no further
  int sampled;         // pools, by power-of-d
  int threshold;       // at time 0
  int tasks, fuller;   // at time 0: tasks in every pool, and pools with one more
  int shift;
  unsigned int peak;   // arrival rate of the system, in units of 2^-shift
  float balanced;      // pools * load, for the imbalance
  double warmup, horizon;  // in mean task times
};

struct Sums {  // what a replication records after its warm-up: integrals over time, and counts
  double time, tasks, spread, max_tasks, threshold, imbalance;
  unsigned long long events, arrivals, green, yellow, resync, changes, without_token;
  unsigned long long plain, dropped;  // events outside the window, and tasks beyond the highest level
  unsigned long long warmup_events;   // before
};

EVENLY_FN unsigned int high_product(unsigned int x, unsigned int y) {
#ifdef __CUDACC__
  return __umulhi(x, y);
#else
  return (unsigned int)(((unsigned long long)x * y) >> 32);
#endif
}

EVENLY_FN float reciprocal(float x) {
#ifdef __CUDACC__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}

EVENLY_FN float root(float x) {  // of what may be negative by rounding
#ifdef __CUDACC__
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(fabsf(x)));
  return y;
#else
  return __builtin_sqrtf(__builtin_fabsf(x));
#endif
}

EVENLY_FN double exact_root(double x) {
#ifdef __CUDACC__
  return sqrt(x > 0 ? x : 0);
#else
  return __builtin_sqrt(x > 0 ? x : 0);
#endif
}

// xoshiro128+ (Blackman and Vigna). An event is decided by its output, and a choice by a word of the state before:
// all four words are uniform and independent of each other.
struct Generator {
  unsigned int a, b, c, d, kept;

  EVENLY_FN unsigned int draw() {
    const unsigned int out = a + d, shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >> 21);
    return out;
  }
  EVENLY_FN unsigned int event() {
    kept = b;
    return draw();
  }
  EVENLY_FN unsigned int choice() { return kept; }
  EVENLY_FN unsigned int another() { return draw(); }
};

EVENLY_FN unsigned long long mix(unsigned long long &word) {  // SplitMix64
  word += 0x9E3779B97F4A7C15ull;
  unsigned long long mixed = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
  return mixed ^ (mixed >> 31);
}

EVENLY_FN Generator new_generator(unsigned long long seed, unsigned long long replication) {
  unsigned long long word = seed;
  word = mix(word) ^ (replication * 0xD1342543DE82EF95ull);
  const unsigned long long first = mix(word), second = mix(word) | 1;  // never all zeros
  return {(unsigned int)first, (unsigned int)(first >> 32), (unsigned int)second, (unsigned int)(second >> 32), 0};
}

// The counts themselves, and the step that is right in every state.
struct Chain {
  int level[LEVELS];  // pools with at least this many tasks
  int total, top, threshold;

  EVENLY_FN void start(const Point &p) {
    for (int i = 0; i < LEVELS; ++i) level[i] = i <= p.tasks ? p.pools : i == p.tasks + 1 ? p.fuller : 0;
    top = p.tasks + (p.fuller > 0);
    total = p.pools * p.tasks + p.fuller;
    threshold = p.threshold;
  }

  EVENLY_FN int level_of_rank(int pools, int rank, int from) const {  // counted from the emptiest pool
    while (level[from] + rank < pools) --from;
    return from;
  }

  EVENLY_FN int level_of_task(int task) const {  // counted from the fullest pools down
    int at = top, here = at * level[at];
    while (task >= here && at > 1) {
      task -= here;
      --at;
      here = at * (level[at] - level[at + 1]);
    }
    return at;
  }

  EVENLY_FN void add(int at) {  // a pool reaches this level
    ++level[at];
    ++total;
    top = at > top ? at : top;
  }

  EVENLY_FN void remove(int at) {  // a pool leaves this level
    --level[at];
    --total;
    if (at == top && level[at] == 0) --top;
  }
};

// The sums of one replication, and those of the current chunk in single precision.
struct Records {
  Sums sums;
  double threshold_time[LEVELS];

  EVENLY_FN void clear() {
    sums = Sums{};
    for (int i = 0; i < LEVELS; ++i) threshold_time[i] = 0;
  }
};

template <class Source>
EVENLY_FN int dispatched_level(const Point &p, const Chain &chain, Source &source, Sums &sums) {
  if (p.policy == JSQ) return chain.level_of_rank(p.pools, 0, chain.top);
  if (p.policy == RANDOM) return chain.level_of_rank(p.pools, high_product(source.choice(), p.pools), chain.top);
  if (p.policy == POWER_OF_D) {
    int ranks[MAX_SAMPLED];  // sorted; a draw among the ranks that are left skips those taken
    for (int drawn = 0; drawn < p.sampled; ++drawn) {
      int rank = high_product(source.another(), p.pools - drawn), index = 0;
      while (index < drawn && ranks[index] <= rank) ++rank, ++index;
      for (int place = drawn; place > index; --place) ranks[place] = ranks[place - 1];
      ranks[index] = rank;
    }
    return chain.level_of_rank(p.pools, ranks[0], chain.top);
  }
  const int l = chain.threshold, green = p.pools - chain.level[l], yellow = p.pools - chain.level[l + 1];
  if (green > 0) {
    const int at = chain.level_of_rank(p.pools, high_product(source.choice(), green), l - 1 < chain.top ? l - 1 : chain.top);
    sums.green += at + 1 < l;  // the pool replaces the token just used
    return at;
  }
  if (yellow > 0) return l;
  ++sums.without_token;
  return chain.level_of_rank(p.pools, high_product(source.choice(), p.pools), chain.top);
}

EVENLY_FN void learn(const Point &p, Chain &chain, bool rise, Sums &sums) {
  chain.threshold += rise ? 1 : -1;
  ++sums.changes;
  const int l = chain.threshold;
  sums.resync += rise ? chain.level[l] - chain.level[l + 1] : p.pools - chain.level[l];
}

EVENLY_FN void record(const Point &p, const Chain &chain, Records &records) {
  const double pools = p.pools, time = 1.0 / ((double)p.peak / (1u << p.shift) + chain.total);
  const double mean = chain.total / pools;
  double squares = 0, distance = 0;
  for (int i = 1; i <= chain.top; ++i) squares += (2.0 * i - 1) * chain.level[i];
#ifdef EVENLY_IMBALANCE
  for (int i = 1; i < LEVELS; ++i) {
    double wanted = p.balanced - pools * (i - 1);
    wanted = wanted < 0 ? 0 : wanted > pools ? pools : wanted;
    distance += (chain.level[i] - wanted) * (chain.level[i] - wanted);
  }
#endif
  const double variance = squares / pools - mean * mean;
  Sums &sums = records.sums;
  sums.time += time;
  sums.tasks += time * chain.total;
  sums.spread += time * exact_root(variance);
  sums.max_tasks += time * chain.top;
  sums.imbalance += time * exact_root(distance) / pools;
  if (p.policy == THRESHOLD) {
    sums.threshold += time * chain.threshold;
    records.threshold_time[chain.threshold] += time;
  }
}

// One event, decided by `mark`: below the peak an arrival, above it a departure.
template <class Source>
EVENLY_FN void plain_step(const Point &p, Chain &chain, unsigned int mark, Source &source, Records &records) {
  Sums &sums = records.sums;
  record(p, chain, records);
  ++sums.events;
  ++sums.plain;
  if (mark < p.peak) {
    ++sums.arrivals;
    bool rise = false, fall = false;
    if (p.policy == THRESHOLD && p.learning) {  // it looks right before the arrival, and acts right after the dispatch
      rise = p.pools - chain.level[chain.threshold + 1] <= 1;
      fall = chain.level[chain.threshold] <= p.fall_at;
    }
    const int at = dispatched_level(p, chain, source, sums) + 1;
    if (at < LEVELS - 2)
      chain.add(at);
    else
      ++sums.dropped;
    if (rise != fall && (fall || chain.threshold < p.highest)) learn(p, chain, rise, sums);
  } else {
    const int at = chain.level_of_task((int)((mark - p.peak) >> p.shift));
    chain.remove(at);
    if (p.policy == THRESHOLD) {
      sums.green += at == chain.threshold;
      sums.yellow += at == chain.threshold + 1;
    }
  }
}

EVENLY_FN unsigned int rate_of(const Point &p, int total) { return p.peak + ((unsigned int)total << p.shift); }

// The levels around the threshold, in registers. Nearly all events of the threshold policy happen there.
//
// Level k, from 1 to 4, is threshold - 2 + k, and tail_k counts the tasks of all pools at that level and above: the
// sum of the counts from there on. An event at level k changes the tails up to k by one. All else is constant
// until an event leaves the window; then `plain_step` does it, on the counts themselves.
struct Window {
  int tail1, tail2, tail3, tail4;
  int above;           // the tail above the window
  int tasks_above;     // tasks in pools above the window
  int pools_below;     // pools below the window
  int squares;         // sum of (tasks - threshold)^2, without what the tails tell
  int level1, level4;
  unsigned int rate;   // without tail1
  float rate_f, excess;  // likewise; tasks beyond pools * threshold
  float highest;       // tasks of the fullest pool beyond threshold + 2
#ifdef EVENLY_IMBALANCE
  float balanced1, balanced2, balanced3, balanced4;  // tails of the balanced counts, up to what is above the window
  float apart;                                       // the squared distance outside the window
#endif

  EVENLY_FN void load(const Point &p, const Chain &chain) {
    const int l = chain.threshold;
    auto count = [&](int i) { return i <= 0 ? p.pools : i < LEVELS ? chain.level[i] : 0; };
    int sum = p.pools * l * l;
    above = 0;
EVENLY_UNROLL(1)
    for (int i = 1; i <= chain.top; ++i) {
      above += i >= l + 3 ? chain.level[i] : 0;
      sum += (2 * (i - l) - 1) * chain.level[i];
    }
    tail4 = count(l + 2) + above;
    tail3 = count(l + 1) + tail4;
    tail2 = count(l) + tail3;
    tail1 = count(l - 1) + tail2;
    tasks_above = (l + 2) * count(l + 3) + above;
    pools_below = p.pools - count(l - 2);
    squares = sum + 3 * tail1 - 2 * (tail2 + tail3 + tail4);
    level1 = l - 1;
    level4 = l + 2;
    const int rest = chain.total - tail1;
    rate = p.peak + ((unsigned int)rest << p.shift);
    rate_f = (float)p.peak / (1u << p.shift) + rest;
    excess = (float)(rest - p.pools * l);
    highest = chain.top > l + 2 ? (float)(chain.top - l - 2) : 0.0f;
#ifdef EVENLY_IMBALANCE
    const float pools = p.pools;
    auto wanted = [&](int i) { const float w = p.balanced - pools * (i - 1); return w < 0 ? 0.0f : w > pools ? pools : w; };
    balanced4 = wanted(l + 2) + above;
    balanced3 = wanted(l + 1) + balanced4;
    balanced2 = wanted(l) + balanced3;
    balanced1 = wanted(l - 1) + balanced2;
    apart = 0;
EVENLY_UNROLL(1)
    for (int i = 1; i < LEVELS; ++i)
      if (i < l - 1 || i > l + 2) apart += (count(i) - wanted(i)) * (count(i) - wanted(i));
#endif
  }

  EVENLY_FN void store(Chain &chain) const {
    const int l = chain.threshold, counts[4] = {tail1 - tail2, tail2 - tail3, tail3 - tail4, tail4 - above};
    const int before = (l >= 2 ? chain.level[l - 1] : 0) + (l >= 1 ? chain.level[l] : 0) + chain.level[l + 1] + chain.level[l + 2];
    int after = 0;
    for (int k = 1; k <= 4; ++k)
      if (l - 2 + k >= 1) after += chain.level[l - 2 + k] = counts[k - 1];
    chain.total += after - before;
    int top = chain.top > l + 2 ? chain.top : l + 2;
    while (top > 0 && chain.level[top] == 0) --top;
    chain.top = top;
  }
};

// Up to `steps` events in the window. Returns the number of events; `mark` is that of the event that leaves it.
template <class Source>
EVENLY_FN int run_window(const Point &p, Window &w, int threshold, int steps, unsigned int &mark, Source &source, Records &records) {
  const int pools = p.pools, almost = p.learning ? pools - 1 : pools, level2 = threshold, level3 = threshold + 1;
  const int almost_empty = p.learning && p.fall_at > 0 ? p.fall_at : 0;
  const unsigned int peak = p.peak, one = 1u << p.shift;
  const float size = pools;
  float time = 0, spread = 0, above1 = 0, above2 = 0;
#ifdef EVENLY_IMBALANCE
  float imbalance = 0;
#endif
  const int first1 = w.tail1, first2 = w.tail2;
  int left2 = 0, left3 = 0, left4 = 0, done = 0;
  EVENLY_UNROLL(4)
  for (; done < steps; ++done) {
    mark = high_product(source.event(), w.rate + (unsigned int)w.tail1 * one);
    const bool arrival = mark < peak;
    const unsigned int task = (mark - peak) >> p.shift;  // of an arrival: beyond all tasks
    const int at1 = w.tail1 - w.tail2, at2 = w.tail2 - w.tail3, at3 = w.tail3 - w.tail4, at4 = w.tail4 - w.above;
    // Tasks are counted from the fullest pools down, so a departure from level k or above is one comparison.
    const bool from1 = task < (unsigned int)(w.level1 * at1 + w.tail2), from2 = task < (unsigned int)(level2 * at2 + w.tail3);
    const bool from3 = task < (unsigned int)(level3 * at3 + w.tail4), from4 = task < (unsigned int)(w.level4 * at4 + w.above);
    const unsigned int green = pools - at2, rank = high_product(source.choice(), green);
    const bool lower = rank < (unsigned int)(pools - at1);  // goes to level 1
    // Outside the window, or no yellow token, or the next arrival changes the threshold, or no pool is at it.
    const bool leaves = (at2 <= almost_empty) | (at3 >= almost) | (task < (unsigned int)w.tasks_above) |
                        (arrival & (rank < (unsigned int)w.pools_below)) | !(arrival | from1);
    if (leaves) break;
    const float tail = (float)w.tail1, passed = reciprocal(w.rate_f + tail), over = tail + w.excess;
    const float variance = (float)(2 * (w.tail2 + w.tail3 + w.tail4) + (w.squares - 3 * w.tail1)) * size - over * over;
    time += passed;
    spread += passed * root(variance);
    above1 += at3 > 0 ? passed : 0;
    above2 += at4 > 0 ? passed : 0;
#ifdef EVENLY_IMBALANCE
    const float off1 = tail - w.balanced1, off2 = (float)w.tail2 - w.balanced2, off3 = (float)w.tail3 - w.balanced3;
    const float off4 = (float)w.tail4 - w.balanced4, e1 = off1 - off2, e2 = off2 - off3, e3 = off3 - off4;
    imbalance += passed * root(w.apart + e1 * e1 + e2 * e2 + e3 * e3 + off4 * off4);
#endif
    left2 += from2;
    left3 += from3;
    left4 += from4;
    w.tail1 += arrival ? 1 : -1;
    w.tail2 += (arrival & !lower) - from2;
    w.tail3 += (arrival & (green == 0)) - from3;
    w.tail4 -= from4;
  }
  Sums &sums = records.sums;
  sums.time += time;
  // Time passes by 1 / (rate_f + tail1): so the integral of rate_f + tail1 is the number of events.
  sums.tasks += done + (double)time * ((double)pools * threshold + w.excess - w.rate_f);
  sums.spread += spread / pools;
  sums.max_tasks += (double)time * (threshold + (double)w.highest) + above1 + above2;
  sums.threshold += (double)time * threshold;
  records.threshold_time[threshold] += time;
#ifdef EVENLY_IMBALANCE
  sums.imbalance += imbalance / pools;
#endif
  // Arrivals and departures add up to the events, and their difference is what the first tail gained. An arrival
  // below level 2 replaces its green token.
  const int arrivals = (done + w.tail1 - first1) / 2, refills = arrivals - (w.tail2 - first2 + left2);
  sums.events += done;
  sums.arrivals += arrivals;
  sums.green += refills + left2 - left3;
  sums.yellow += left3 - left4;
  return done;
}

// Events that surely happen before `end`: none takes longer than the mean time between arrivals. At least one.
EVENLY_FN int steps_until(double end, double time, double arrival_rate) {
  const double steps = (end - time) * arrival_rate;
  return steps >= CHUNK ? CHUNK : steps < 1 ? 1 : (int)steps;
}

// A whole replication. `Windowed` is for the threshold policy.
template <bool Windowed, class Source>
EVENLY_FN void run(const Point &p, Source &source, Records &records) {
  Chain chain;
  Window window;
  chain.start(p);
  records.clear();
  const double arrival_rate = (double)p.peak / (1u << p.shift);
  double before = 0;  // time in the warm-up
  bool warm = p.warmup <= 0;
  if (Windowed) window.load(p, chain);
  while (true) {
    const double time = before + records.sums.time;
    if (!warm && time >= p.warmup) {
      const unsigned long long events = records.sums.events;
      before = time;
      warm = true;
      records.clear();
      records.sums.warmup_events = events;
    }
    if (time >= p.horizon) return;
    const double end = warm ? p.horizon : p.warmup;
    int steps = steps_until(end, time, arrival_rate);
    if (Windowed) {
      unsigned int mark = 0;
      const int done = run_window(p, window, chain.threshold, steps, mark, source, records);
      if (done < steps) {
        window.store(chain);
        plain_step(p, chain, mark, source, records);
        window.load(p, chain);
      }
    } else {
      for (; steps > 0; --steps) plain_step(p, chain, high_product(source.event(), rate_of(p, chain.total)), source, records);
    }
  }
}

}  // namespace evenly
