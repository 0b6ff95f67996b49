// chain.h as a library for this machine.
#include "chain.h"

using namespace evenly;

// Random numbers that were recorded: for each event one, and those of its choices.
struct Recorded {
  const unsigned int *events, *choices;
  int event_number = -1, choice_number = 0;

  unsigned int event() {
    choice_number = 0;
    return events[++event_number];
  }
  unsigned int choice() { return choices[event_number * MAX_SAMPLED + choice_number++]; }
  unsigned int another() { return choice(); }
};

extern "C" {

void sizes(int *out) {
  out[0] = sizeof(Point);
  out[1] = sizeof(Sums);
}

// Plain steps, one by one: the counts, the total and the threshold after each.
void play(const Point *p, const unsigned int *events, const unsigned int *choices, int steps, int *levels, int *totals,
          int *thresholds, Sums *sums) {
  static Records records;
  Recorded source{events, choices};
  Chain chain;
  chain.start(*p);
  records.clear();
  for (int step = 0; step < steps; ++step) {
    plain_step(*p, chain, high_product(source.event(), rate_of(*p, chain.total)), source, records);
    for (int i = 0; i < LEVELS; ++i) levels[step * LEVELS + i] = chain.level[i];
    totals[step] = chain.total;
    thresholds[step] = chain.threshold;
  }
  *sums = records.sums;
}

// One replication, as on the device.
void replicate(const Point *p, unsigned long long seed, unsigned long long replication, int windowed, Sums *sums,
               double *threshold_time) {
  static Records records;
  Generator source = new_generator(seed, replication);
  if (windowed)
    run<true>(*p, source, records);
  else
    run<false>(*p, source, records);
  *sums = records.sums;
  for (int i = 0; i < LEVELS; ++i) threshold_time[i] = records.threshold_time[i];
}
}
