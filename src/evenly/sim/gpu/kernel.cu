// One thread per replication; a block has replications of one point only.
#include "chain.h"

extern "C" __global__ void __launch_bounds__(256, 4)
run_points(const evenly::Point *points, const unsigned long long *seeds, int replications, int blocks_per_point,
           evenly::Sums *sums, unsigned long long *threshold_time) {
  const int point = blockIdx.x / blocks_per_point;
  const int replication = (blockIdx.x % blocks_per_point) * blockDim.x + threadIdx.x;
  if (replication >= replications) return;
  const evenly::Point p = points[point];
  evenly::Generator source = evenly::new_generator(seeds[point], replication);
  evenly::Records records;
  if (p.policy == evenly::THRESHOLD)
    evenly::run<true>(p, source, records);
  else
    evenly::run<false>(p, source, records);
  sums[(long long)point * replications + replication] = records.sums;
  // In whole numbers of 2^-24: their sum does not depend on the order in which threads end.
  for (int i = 0; i < evenly::LEVELS; ++i)
    if (records.threshold_time[i] > 0)
      atomicAdd(&threshold_time[point * evenly::LEVELS + i], (unsigned long long)(records.threshold_time[i] * 16777216.0 + 0.5));
}
