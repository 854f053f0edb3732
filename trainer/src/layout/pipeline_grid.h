// Which rank computes which stage of a pipeline, on which share of the data.
//
// As in DeepSpeed the data-parallel rank counts fastest: rank = stage x data-parallel size + data-parallel rank. Ranks
// of one stage are neighbours; they share its parameters and sum its gradients.
// Threading: immutable. Errors: dsat::Error when the stages do not divide the ranks.
#ifndef DSAT_TRAINER_LAYOUT_PIPELINE_GRID_H_
#define DSAT_TRAINER_LAYOUT_PIPELINE_GRID_H_

#include <vector>

namespace dsat::trainer {

class PipelineGrid {
 public:
  PipelineGrid(int ranks, int num_stages);

  int num_stages() const { return num_stages_; }
  int data_parallel_size() const { return data_parallel_size_; }
  int stage_of(int rank) const { return rank / data_parallel_size_; }
  int data_parallel_rank_of(int rank) const { return rank % data_parallel_size_; }
  int rank_of(int stage, int data_parallel_rank) const { return stage * data_parallel_size_ + data_parallel_rank; }

  // The ranks that hold the same stage; the ranks that pass one micro batch on. Ascending.
  std::vector<int> data_parallel_group(int stage) const;
  std::vector<int> pipeline(int data_parallel_rank) const;

 private:
  int num_stages_;
  int data_parallel_size_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_PIPELINE_GRID_H_
