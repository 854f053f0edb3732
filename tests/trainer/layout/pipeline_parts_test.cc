// The parts of a pipeline that need no LibTorch: the order of work, the cut of the layers, the grid of ranks.
// Schedules of all stages are played together, so that a deadlock would show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "dsat/error.h"
#include "layout/pipeline_grid.h"
#include "layout/pipeline_partition.h"
#include "layout/pipeline_schedule.h"

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Program = std::vector<PipelineInstruction>;

std::string letters(const Program& program) {
  std::string text;
  for (const PipelineInstruction& one : program) {
    if (one.action == PipelineAction::forward) text += 'F';
    if (one.action == PipelineAction::backward) text += 'B';
  }
  return text;
}

// Runs the stages side by side over a transport whose send ends only when its receiver takes it.
class BlockingTransport {
 public:
  explicit BlockingTransport(std::vector<Program> programs)
      : programs_(std::move(programs)), at_(programs_.size(), 0) {}

  // False: every stage that has something left waits for another.
  bool run() {
    while (step()) {
    }
    for (size_t stage = 0; stage < programs_.size(); ++stage) {
      if (at_[stage] != programs_[stage].size()) return false;
    }
    return true;
  }

 private:
  bool step() {
    for (size_t stage = 0; stage < programs_.size(); ++stage) {
      const PipelineInstruction* const now = current(stage);
      if (now == nullptr) continue;
      if (now->action == PipelineAction::forward || now->action == PipelineAction::backward) {
        ++at_[stage];
        return true;
      }
      const bool meets =
          (now->action == PipelineAction::send_activation &&
           meet(stage + 1, PipelineAction::receive_activation, *now)) ||
          (now->action == PipelineAction::send_gradient && meet(stage - 1, PipelineAction::receive_gradient, *now));
      if (!meets) continue;
      ++at_[stage];
      return true;
    }
    return false;
  }
  const PipelineInstruction* current(size_t stage) const {
    return at_[stage] < programs_[stage].size() ? &programs_[stage][at_[stage]] : nullptr;
  }
  bool meet(size_t peer, PipelineAction wanted, const PipelineInstruction& sent) {
    const PipelineInstruction* const theirs = current(peer);
    if (theirs == nullptr || theirs->action != wanted) return false;
    EXPECT_EQ(theirs->micro_batch, sent.micro_batch);
    ++at_[peer];
    return true;
  }

  std::vector<Program> programs_;
  std::vector<size_t> at_;
};

constexpr int kMostStages = 6;
constexpr int64_t kMostMicroBatches = 9;

template <typename Check>
void for_all_shapes(Check check) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    for (int64_t micro_batches = 1; micro_batches <= kMostMicroBatches; ++micro_batches) {
      SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(micro_batches) + " micro batches");
      check(stages, micro_batches);
    }
  }
}

TEST(PipelineSchedule, RunsAheadAlternatesAndDrains) {
  EXPECT_EQ(letters(training_schedule(0, 1, 3)), "FBFBFB");
  EXPECT_EQ(letters(training_schedule(0, 3, 5)), "FFFBFBFBBB");
  EXPECT_EQ(letters(training_schedule(1, 3, 5)), "FFBFBFBFBB");
  EXPECT_EQ(letters(training_schedule(2, 3, 5)), "FBFBFBFBFB");
  EXPECT_EQ(letters(training_schedule(0, 4, 2)), "FFBB");
  EXPECT_EQ(letters(evaluation_schedule(1, 2, 3)), "FFF");
}

TEST(PipelineSchedule, EveryMicroBatchGoesForwardThenBackwardOnceInEachStage) {
  for_all_shapes([](int stages, int64_t micro_batches) {
    for (int stage = 0; stage < stages; ++stage) {
      std::map<PipelineAction, std::vector<int64_t>> done;
      int64_t alive = 0, most_alive = 0;
      for (const PipelineInstruction& one : training_schedule(stage, stages, micro_batches)) {
        done[one.action].push_back(one.micro_batch);
        if (one.action == PipelineAction::forward) most_alive = std::max(most_alive, ++alive);
        if (one.action == PipelineAction::backward) --alive;
      }
      std::vector<int64_t> all(static_cast<size_t>(micro_batches)), none;
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(done[PipelineAction::forward], all);
      EXPECT_EQ(done[PipelineAction::backward], all);
      EXPECT_EQ(done[PipelineAction::receive_activation], stage > 0 ? all : none);
      EXPECT_EQ(done[PipelineAction::send_gradient], stage > 0 ? all : none);
      EXPECT_EQ(done[PipelineAction::send_activation], stage + 1 < stages ? all : none);
      EXPECT_EQ(done[PipelineAction::receive_gradient], stage + 1 < stages ? all : none);
      EXPECT_EQ(most_alive, std::min<int64_t>(stages - stage, micro_batches));
    }
  });
}

TEST(PipelineSchedule, DataIsThereBeforeItIsUsed) {
  for_all_shapes([](int stages, int64_t micro_batches) {
    for (int stage = 0; stage < stages; ++stage) {
      std::map<std::pair<PipelineAction, int64_t>, size_t> at;
      const Program program = training_schedule(stage, stages, micro_batches);
      for (size_t i = 0; i < program.size(); ++i) at[{program[i].action, program[i].micro_batch}] = i + 1;
      const auto position = [&](PipelineAction action, int64_t i) { return at[{action, i}]; };
      for (int64_t i = 0; i < micro_batches; ++i) {
        EXPECT_LT(position(PipelineAction::receive_activation, i), position(PipelineAction::forward, i));
        EXPECT_LT(position(PipelineAction::forward, i), position(PipelineAction::backward, i));
        EXPECT_LT(position(PipelineAction::receive_gradient, i), position(PipelineAction::backward, i));
        if (stage + 1 < stages) {
          EXPECT_LT(position(PipelineAction::forward, i), position(PipelineAction::send_activation, i));
        }
        if (stage > 0) {
          EXPECT_LT(position(PipelineAction::backward, i), position(PipelineAction::send_gradient, i));
        }
      }
    }
  });
}

TEST(PipelineSchedule, BlockingSendsMeetTheirReceivers) {
  for_all_shapes([](int stages, int64_t micro_batches) {
    std::vector<Program> training, evaluation;
    for (int stage = 0; stage < stages; ++stage) {
      training.push_back(training_schedule(stage, stages, micro_batches));
      evaluation.push_back(evaluation_schedule(stage, stages, micro_batches));
    }
    EXPECT_TRUE(BlockingTransport(training).run());
    EXPECT_TRUE(BlockingTransport(evaluation).run());
  });
}

std::vector<size_t> ends_of(const Segments& stages) {
  std::vector<size_t> ends;
  size_t begin = 0;
  for (const Segment& stage : stages) {
    EXPECT_EQ(stage.begin, begin);
    EXPECT_GT(stage.end, stage.begin);
    ends.push_back(begin = stage.end);
  }
  return ends;
}

int64_t largest(const std::vector<int64_t>& parameters, const Segments& stages) {
  int64_t most = 0;
  for (const Segment& stage : stages) {
    const auto first = parameters.begin();
    most = std::max(most, std::accumulate(first + static_cast<std::ptrdiff_t>(stage.begin),
                                          first + static_cast<std::ptrdiff_t>(stage.end), int64_t{0}));
  }
  return most;
}

// By trying every cut.
int64_t least_possible(const std::vector<int64_t>& parameters, size_t begin, int stages) {
  int64_t held = 0, best = INT64_MAX;
  for (size_t end = begin; end < parameters.size(); ++end) {
    held += parameters[end];
    if (stages == 1) continue;
    if (parameters.size() - end - 1 < static_cast<size_t>(stages - 1)) break;
    best = std::min(best, std::max(held, least_possible(parameters, end + 1, stages - 1)));
  }
  return stages == 1 ? held : best;
}

TEST(PipelinePartition, LeavesTheLargestStageAsFewParametersAsAnyCut) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> parameters(1 + random() % 9);
    for (int64_t& count : parameters) count = random() % 4 == 0 ? 0 : random() % 50;
    for (int stages = 1; stages <= static_cast<int>(parameters.size()); ++stages) {
      const Segments cut = pipeline_stages(parameters, stages, PartitionMethod::parameters);
      ASSERT_EQ(cut.size(), static_cast<size_t>(stages));
      EXPECT_EQ(ends_of(cut).back(), parameters.size());
      EXPECT_EQ(largest(parameters, cut), least_possible(parameters, 0, stages))
          << ::testing::PrintToString(parameters);
    }
  }
}

TEST(PipelinePartition, UniformCountsLayers) {
  const std::vector<int64_t> parameters = {1000, 1, 1, 1, 1};
  EXPECT_THAT(ends_of(pipeline_stages(parameters, 2, PartitionMethod::uniform)), ElementsAre(2, 5));
  EXPECT_THAT(ends_of(pipeline_stages(parameters, 2, PartitionMethod::parameters)), ElementsAre(1, 5));
}

template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PipelinePartition, RefusesMoreStagesThanLayers) {
  for (const auto method : {PartitionMethod::parameters, PartitionMethod::uniform}) {
    EXPECT_THAT(refusal([&] {
                  pipeline_stages({5, 5}, 3, method);
                }),
                AllOf(HasSubstr("pipeline.stages is 3"), HasSubstr("2 layers")));
  }
}

TEST(PipelineGrid, RanksOfOneStageAreNeighbours) {
  const PipelineGrid grid(6, 2);
  EXPECT_EQ(grid.data_parallel_size(), 3);
  EXPECT_THAT(grid.data_parallel_group(1), ElementsAre(3, 4, 5));
  EXPECT_THAT(grid.pipeline(2), ElementsAre(2, 5));
}

TEST(PipelineGrid, EveryRankIsInOneGroupOfEachKind) {
  for (const auto& [ranks, stages] : {std::pair(1, 1), std::pair(4, 1), std::pair(4, 4), std::pair(12, 3)}) {
    const PipelineGrid grid(ranks, stages);
    for (int rank = 0; rank < ranks; ++rank) {
      const int stage = grid.stage_of(rank), replica = grid.data_parallel_rank_of(rank);
      EXPECT_EQ(grid.rank_of(stage, replica), rank);
      EXPECT_EQ(grid.data_parallel_group(stage)[static_cast<size_t>(replica)], rank);
      EXPECT_EQ(grid.pipeline(replica)[static_cast<size_t>(stage)], rank);
    }
  }
}

TEST(PipelineGrid, RefusesStagesThatDoNotDivideTheRanks) {
  EXPECT_THAT(refusal([] { PipelineGrid(4, 3); }),
              AllOf(HasSubstr("pipeline.stages is 3"), HasSubstr("4 ranks"), HasSubstr("--ranks or pipeline.stages")));
  EXPECT_THAT(refusal([] { PipelineGrid(2, 4); }), HasSubstr("2 ranks"));
}

}  // namespace
}  // namespace dsat::trainer
