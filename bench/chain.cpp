// The aggregate Markov chain of the learning threshold policy, hand-written in C++17: the fast baseline for the
// Numba kernel. It is exact, and keeps the same records as the kernel, or the time at each threshold alone.
//
//   c++ -std=c++17 -O3 -march=native -o chain chain.cpp
//   chain POOLS LOAD FALL_AT HORIZON SEED [mean] [lean]
//
// FALL_AT is floor(alpha * POOLS), computed exactly by the caller. With `mean`, every holding time is
// replaced by its mean. With `lean`, only the time at each threshold is recorded, and all other figures but
// the events are 0. The result is one JSON object on stdout; times are shares of the horizon.
//
// The state is pools_at_least[i], the number of pools with at least i tasks, and the threshold. It starts
// empty with threshold 0. Tasks arrive at rate POOLS * LOAD, and each leaves at rate 1.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>

namespace {

using Count = std::int64_t;

constexpr int kLevels = 1024;  // room for levels 0 .. kLevels - 1; a run that needs more stops with an error
constexpr double kTwoToMinus53 = 0x1p-53;

// xoshiro256++ (Blackman and Vigna), seeded through splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      std::uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
      word = mixed ^ (mixed >> 31);
    }
  }

  std::uint64_t bits() {
    const std::uint64_t result = rotate_left(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate_left(state_[3], 45);
    return result;
  }

  double uniform() { return static_cast<double>(bits() >> 11) * kTwoToMinus53; }

 private:
  static std::uint64_t rotate_left(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

  std::array<std::uint64_t, 4> state_;
};

// Standard exponentials by the ziggurat of Marsaglia and Tsang: strips of equal area under exp(-x).
class Exponential {
 public:
  Exponential() {
    set_strip(0, kStripArea / std::exp(-kTailStart), kTailStart);  // the base, with the tail folded in
    height_[0] = 1.0;
    double outer = kTailStart;
    for (int strip = kStrips - 1; strip > 0; --strip) {
      const double inner = strip > 1 ? -std::log(kStripArea / outer + std::exp(-outer)) : 0.0;
      set_strip(strip, outer, inner);
      height_[strip] = std::exp(-outer);
      outer = inner;
    }
  }

  double draw(Random& random) const {
    for (;;) {
      const std::uint64_t bits = random.bits();
      const unsigned strip = bits % kStrips;
      const std::uint64_t place = bits >> 11;
      const double x = static_cast<double>(place) * width_[strip];
      if (place < inside_[strip]) return x;
      const double u = random.uniform();
      if (strip == 0) return kTailStart - std::log1p(-u);
      if (height_[strip] + u * (height_[strip - 1] - height_[strip]) < std::exp(-x)) return x;
    }
  }

 private:
  static constexpr int kStrips = 256;
  static constexpr double kTailStart = 7.69711747013104972;
  static constexpr double kStripArea = 3.949659822581572e-3;

  // A point of the strip [0, outer) left of `inner` is always under the curve.
  void set_strip(int strip, double outer, double inner) {
    width_[strip] = outer * kTwoToMinus53;
    inside_[strip] = static_cast<std::uint64_t>(inner / outer / kTwoToMinus53);
  }

  std::array<std::uint64_t, kStrips> inside_;
  std::array<double, kStrips> width_;
  std::array<double, kStrips> height_;
};

struct Scenario {
  Count pools;
  double load;
  Count fall_at;
  double horizon;
  std::uint64_t seed;
  bool mean_holding;
  bool lean;
};

// Lean: record nothing but the time at each threshold.
template <bool Lean>
class Chain {
 public:
  explicit Chain(const Scenario& scenario)
      : pools_(scenario.pools),
        fall_at_(scenario.fall_at),
        horizon_(scenario.horizon),
        arrival_rate_(static_cast<double>(scenario.pools) * scenario.load),
        full_levels_(static_cast<int>(std::floor(scenario.load))),
        partial_level_(arrival_rate_ - static_cast<double>(scenario.pools) * full_levels_),
        events_random_(2 * scenario.seed),
        choices_random_(2 * scenario.seed + 1) {
    pools_at_least_[0] = pools_;
    const double everywhere = static_cast<double>(pools_);
    square_distance_ = everywhere * everywhere * full_levels_ + partial_level_ * partial_level_;
  }

  template <bool MeanHolding>
  void run() {
    Random events = events_random_;  // local copies stay in registers
    Random choices = choices_random_;
    for (;;) {
      const double rate = arrival_rate_ + static_cast<double>(tasks_);
      const double holding = (MeanHolding ? 1.0 : exponential_.draw(events)) / rate;
      if (now_ + holding > horizon_) break;
      stay(holding);
      const double pick = events.uniform() * rate;
      if (pick < arrival_rate_) {
        arrive(choices.uniform());
      } else {
        depart(std::min(static_cast<Count>(pick - arrival_rate_), tasks_ - 1));
      }
    }
    stay(horizon_ - now_);
    close_records();
  }

  void print(double seconds) const;

 private:
  void stay(double time) {
    now_ += time;
    if constexpr (Lean) return;
    imbalance_area_ += std::sqrt(std::max(square_distance_, 0.0)) * time;
    spread_area_ += spread() * time;
  }

  // Standard deviation of tasks over pools.
  double spread() const {
    const double tasks = static_cast<double>(tasks_);
    const double pools = static_cast<double>(pools_);
    return std::sqrt(std::max(pools * static_cast<double>(squares_) - tasks * tasks, 0.0)) / pools;
  }

  void arrive(double u) {
    const Count green_tokens = pools_ - pools_at_least_[threshold_];
    const Count yellow_tokens = pools_ - pools_at_least_[threshold_ + 1];
    const int level = choose_level(u, green_tokens, yellow_tokens);
    ++arrivals_;
    if constexpr (!Lean) green_messages_ += level + 1 < threshold_;
    add_to_level(level + 1);
    learn(green_tokens, yellow_tokens);
  }

  // The number of tasks in the pool that gets the arrival, before it does.
  int choose_level(double u, Count green_tokens, Count yellow_tokens) const {
    if (green_tokens > 0) return level_of_pool(uniform_below(u, green_tokens), threshold_ - 1);
    if (yellow_tokens > 0) return threshold_;
    return level_of_pool(uniform_below(u, pools_), top_);
  }

  static Count uniform_below(double u, Count bound) {
    return static_cast<Count>(u * static_cast<double>(bound));
  }

  // The level of a pool by its rank among the pools with at most `highest` tasks, fullest first.
  int level_of_pool(Count rank, int highest) const {
    int level = highest;
    for (;; --level) {
      const Count here = pools_at_least_[level] - pools_at_least_[level + 1];
      if (rank < here) return level;
      rank -= here;
    }
  }

  // The level of the pool that holds a task, by the task's rank, fullest pools first.
  int level_of_task(Count rank) const {
    int level = top_;
    for (;; --level) {
      const Count here = (pools_at_least_[level] - pools_at_least_[level + 1]) * level;
      if (rank < here) return level;
      rank -= here;
    }
  }

  void depart(Count task) {
    const int level = level_of_task(task);
    if constexpr (!Lean) {
      green_messages_ += level == threshold_;
      yellow_messages_ += level == threshold_ + 1;
    }
    remove_from_level(level);
  }

  // The rule looks at the state right before the arrival and acts right after the dispatch.
  void learn(Count green_before, Count yellow_before) {
    const bool rise = yellow_before <= 1;
    const bool fall = pools_ - green_before <= fall_at_;
    if (rise != fall) move_threshold(rise ? 1 : -1);
  }

  void move_threshold(int step) {
    threshold_time_[threshold_] += now_ - threshold_since_;
    threshold_since_ = now_;
    threshold_ += step;
    if constexpr (Lean) return;
    ++threshold_changes_;
    const Count at_or_above = pools_at_least_[threshold_];
    resync_messages_ += step > 0 ? at_or_above - pools_at_least_[threshold_ + 1] : pools_ - at_or_above;
  }

  double balanced(int level) const {
    if (level <= full_levels_) return static_cast<double>(pools_);
    return level == full_levels_ + 1 ? partial_level_ : 0.0;
  }

  void add_to_level(int level) {
    const double before = static_cast<double>(pools_at_least_[level]);
    ++pools_at_least_[level];
    ++tasks_;
    if constexpr (!Lean) {
      square_distance_ += 2.0 * (before - balanced(level)) + 1.0;
      level_area_[level] -= now_;
      squares_ += 2 * level - 1;
    }
    if (level > top_) move_top(level);
  }

  void remove_from_level(int level) {
    const double before = static_cast<double>(pools_at_least_[level]);
    --pools_at_least_[level];
    --tasks_;
    if constexpr (!Lean) {
      square_distance_ -= 2.0 * (before - balanced(level)) - 1.0;
      level_area_[level] += now_;
      squares_ -= 2 * level - 1;
    }
    if (pools_at_least_[level] == 0) move_top(level - 1);
  }

  void move_top(int level) {
    if (level + 2 >= kLevels) throw std::runtime_error("a pool has more tasks than there is room for");
    if constexpr (!Lean) {
      top_time_[top_] += now_ - top_since_;
      top_since_ = now_;
      highest_ = std::max(highest_, level);
    }
    top_ = level;
  }

  void close_records() {
    threshold_time_[threshold_] += horizon_ - threshold_since_;
    if constexpr (Lean) return;
    top_time_[top_] += horizon_ - top_since_;
    for (int level = 0; level < kLevels; ++level) {
      level_area_[level] += static_cast<double>(pools_at_least_[level]) * horizon_;
    }
  }

  const Count pools_;
  const Count fall_at_;
  const double horizon_;
  const double arrival_rate_;
  const int full_levels_;       // in balance, every pool has this many tasks,
  const double partial_level_;  // and this many pools have one more
  const Exponential exponential_;
  const Random events_random_;
  const Random choices_random_;

  double now_ = 0.0;
  std::array<Count, kLevels> pools_at_least_{};
  Count tasks_ = 0;
  Count squares_ = 0;  // sum over pools of tasks squared
  int threshold_ = 0;
  int top_ = 0;  // tasks in the fullest pool
  int highest_ = 0;
  double square_distance_;  // sum of (pools_at_least[i] - balanced(i))^2 over i >= 1

  double threshold_since_ = 0.0;
  double top_since_ = 0.0;
  double imbalance_area_ = 0.0;
  double spread_area_ = 0.0;
  std::array<double, kLevels> level_area_{};
  std::array<double, kLevels> threshold_time_{};
  std::array<double, kLevels> top_time_{};
  Count arrivals_ = 0;
  Count green_messages_ = 0;
  Count yellow_messages_ = 0;
  Count resync_messages_ = 0;
  Count threshold_changes_ = 0;
};

template <bool Lean>
void Chain<Lean>::print(double seconds) const {
  const double pool_time = static_cast<double>(pools_) * horizon_;
  double task_area = 0.0;
  for (int level = 1; level <= highest_; ++level) task_area += level_area_[level];

  const Count departures = arrivals_ - tasks_;
  std::printf("{\"events\": %lld", static_cast<long long>(arrivals_ + departures));
  std::printf(", \"seconds\": %.9g", seconds);
  std::printf(", \"mean_tasks\": %.17g", task_area / pool_time);
  std::printf(", \"pools_with_exactly\": [");
  for (int level = 0; level <= highest_; ++level) {
    const double area = level_area_[level] - level_area_[level + 1];
    std::printf("%s%.17g", level > 0 ? ", " : "", area / pool_time);
  }
  std::printf("], \"max_tasks_time\": [");
  for (int level = 0; level <= highest_; ++level) {
    std::printf("%s%.17g", level > 0 ? ", " : "", top_time_[level] / horizon_);
  }
  std::printf("], \"threshold_time\": {");
  const char* separator = "";
  for (int level = 0; level < kLevels; ++level) {
    if (threshold_time_[level] <= 0.0) continue;
    std::printf("%s\"%d\": %.17g", separator, level, threshold_time_[level] / horizon_);
    separator = ", ";
  }
  std::printf("}, \"threshold_changes\": %lld", static_cast<long long>(threshold_changes_));
  std::printf(", \"messages\": {\"green\": %lld, \"yellow\": %lld, \"resync\": %lld, \"tasks\": %lld}",
              static_cast<long long>(green_messages_), static_cast<long long>(yellow_messages_),
              static_cast<long long>(resync_messages_), static_cast<long long>(arrivals_));
  std::printf(", \"imbalance\": %.17g", imbalance_area_ / pool_time);
  std::printf(", \"spread\": %.17g}\n", spread_area_ / horizon_);
}

double parse_number(const char* name, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !std::isfinite(value)) {
    throw std::invalid_argument(std::string(name) + " must be a number, not '" + text + "'");
  }
  return value;
}

std::uint64_t parse_count(const char* name, const char* text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || std::strchr(text, '-') != nullptr) {
    throw std::invalid_argument(std::string(name) + " must be a whole number, 0 or more, not '" + text + "'");
  }
  return value;
}

void require(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

Scenario parse(int count, char** words) {
  const bool mean = count > 6 && std::strcmp(words[6], "mean") == 0;
  const int last = mean ? 7 : 6;
  const bool lean = count > last && std::strcmp(words[last], "lean") == 0;
  require(count == last + lean, "usage: chain POOLS LOAD FALL_AT HORIZON SEED [mean] [lean]");
  constexpr std::uint64_t most_pools = std::uint64_t{1} << 32;
  const std::uint64_t pools = parse_count("POOLS", words[1]);
  const double load = parse_number("LOAD", words[2]);
  const std::uint64_t fall_at = parse_count("FALL_AT", words[3]);
  const double horizon = parse_number("HORIZON", words[4]);
  require(pools >= 1 && pools <= most_pools, "POOLS must be between 1 and 2^32");
  require(load > 0.0 && load < kLevels / 2, "LOAD must be above 0 and below half the room for levels (512)");
  require(fall_at < pools, "FALL_AT must be below POOLS (alpha is below 1)");
  require(horizon > 0.0, "HORIZON must be above 0");
  const std::uint64_t seed = parse_count("SEED", words[5]);
  return {static_cast<Count>(pools), load, static_cast<Count>(fall_at), horizon, seed, mean, lean};
}

// Processor time: on a busy machine, other programs would count otherwise.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <bool Lean>
void simulate(const Scenario& scenario) {
  Chain<Lean> chain(scenario);
  const double start = processor_seconds();
  if (scenario.mean_holding) {
    chain.template run<true>();
  } else {
    chain.template run<false>();
  }
  chain.print(processor_seconds() - start);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Scenario scenario = parse(argc, argv);
    if (scenario.lean) {
      simulate<true>(scenario);
    } else {
      simulate<false>(scenario);
    }
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "chain: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chain: %s\n", error.what());
    return 1;
  }
  return 0;
}
