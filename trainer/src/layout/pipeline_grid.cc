// Numbers the ranks of a pipeline's stages.
// The data-parallel rank counts fastest, as in DeepSpeed, so that ranks of one stage are neighbours.
#include "layout/pipeline_grid.h"

#include <fmt/format.h>

#include "dsat/error.h"

namespace dsat::trainer {

PipelineGrid::PipelineGrid(int ranks, int num_stages)
    : num_stages_(num_stages), data_parallel_size_(num_stages < 1 ? 0 : ranks / num_stages) {
  if (data_parallel_size_ > 0 && ranks % num_stages == 0) return;
  throw Error(fmt::format("pipeline.stages is {}: it does not divide the {} ranks; change --ranks or pipeline.stages",
                          num_stages, ranks));
}

std::vector<int> PipelineGrid::data_parallel_group(int stage) const {
  std::vector<int> ranks;
  for (int i = 0; i < data_parallel_size_; ++i) ranks.push_back(rank_of(stage, i));
  return ranks;
}

std::vector<int> PipelineGrid::pipeline(int data_parallel_rank) const {
  std::vector<int> ranks;
  for (int stage = 0; stage < num_stages_; ++stage) ranks.push_back(rank_of(stage, data_parallel_rank));
  return ranks;
}

}  // namespace dsat::trainer
