// The learning threshold policy as lean as it gets: it records the time at each threshold, and nothing else.
//
//   c++ -std=c++17 -O3 -march=native -o lean lean.cpp
//   lean POOLS RATE FALL_AT EVENTS SEED
//
// Tasks arrive at RATE, a whole number, in units of the rate at which each leaves. All rates are whole, so an event
// is decided by one product of integers. Each lasts its mean time, 1 / rate. Random numbers come from xoshiro128+
// (Blackman and Vigna): an event uses its output, and the choice of a pool a word of its state before that.
// The state starts empty, with threshold 0. The result is one JSON object on stdout; times are shares.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int kLevels = 256;

struct Random {
  std::uint32_t a, b, c, d;

  std::uint32_t draw() {
    const std::uint32_t out = a + d, shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >> 21);
    return out;
  }
};

std::uint32_t below(std::uint32_t bits, std::uint32_t bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(bits) * bound) >> 32);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: lean POOLS RATE FALL_AT EVENTS SEED\n");
    return 2;
  }
  const int pools = std::atoi(argv[1]), peak = std::atoi(argv[2]), fall_at = std::atoi(argv[3]);
  const long long events = std::atoll(argv[4]);
  if (pools < 1 || peak < 1 || peak / pools > kLevels / 4) {
    std::fprintf(stderr, "lean: POOLS and RATE must be at least 1, and RATE at most %d per pool\n", kLevels / 4);
    return 2;
  }
  Random random{static_cast<std::uint32_t>(std::atoi(argv[5])), 0x9e3779b9u, 0xbf58476du, 0x94d049bbu};
  for (int i = 0; i < 64; ++i) random.draw();

  static int at_least[kLevels];  // pools with at least this many tasks
  static double threshold_time[kLevels];
  at_least[0] = pools;
  int top = 0, total = 0, threshold = 0;
  double since = 0;  // time at the current threshold

  const std::clock_t start = std::clock();  // processor time
  for (long long event = 0; event < events; ++event) {
    const std::uint32_t rate = static_cast<std::uint32_t>(peak + total), choice = random.b;
    since += 1.0 / rate;
    const int mark = static_cast<int>(below(random.draw(), rate));
    if (mark < peak) {
      const int green = pools - at_least[threshold], yellow = pools - at_least[threshold + 1];
      int level;
      if (green > 0) {
        const int rank = static_cast<int>(below(choice, green));
        level = threshold - 1;
        while (at_least[level] + rank < pools) --level;
      } else if (yellow > 0) {
        level = threshold;
      } else {
        const int rank = static_cast<int>(below(choice, pools));
        level = top;
        while (at_least[level] + rank < pools) --level;
      }
      const bool rise = yellow <= 1, fall = pools - green <= fall_at;
      ++at_least[++level];
      ++total;
      if (level > top) top = level;
      if (rise != fall) {
        threshold_time[threshold] += since;
        since = 0;
        threshold += rise ? 1 : -1;
      }
    } else {
      int task = mark - peak, level = top, here = level * at_least[level];
      while (task >= here) {
        task -= here;
        --level;
        here = level * (at_least[level] - at_least[level + 1]);
      }
      --at_least[level];
      --total;
      if (level == top && at_least[level] == 0) --top;
    }
  }
  threshold_time[threshold] += since;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;

  double whole = 0;
  for (const double time : threshold_time) whole += time;
  std::printf("{\"events\": %lld, \"seconds\": %.9g, \"threshold_time\": {", events, seconds);
  const char* separator = "";
  for (int level = 0; level < kLevels; ++level) {
    if (threshold_time[level] <= 0) continue;
    std::printf("%s\"%d\": %.17g", separator, level, threshold_time[level] / whole);
    separator = ", ";
  }
  std::printf("}}\n");
}
