// Ranks that another launcher has started watch over each other: whatever becomes of one, each log ends with the cause.
// Real processes are killed and stopped at each point of their life.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>

#include "dsat/base/ports.h"
#include "trainer/program/trial_program.h"

namespace dsat::trainer::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;

class Group {
 public:
  explicit Group(const std::string& what) {
    program_.write_raw_config(R"({"train_micro_batch_size_per_gpu": 1})");
    const std::string port = "MASTER_PORT=" + std::to_string(free_port());
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks_.push_back(program_.start(what, {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(kRanks),
                                             "MASTER_ADDR=127.0.0.1", port}));
    }
  }
  bool have_met() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [&](pid_t pid) { return program_.output_of(pid) == "met\n"; });
  }
  // Ends them. What each of them has printed, and how it had ended.
  std::string why_not() {
    std::string text;
    for (int rank = 0; rank < kRanks; ++rank) {
      send(SIGKILL, rank);
      const Ended ended = wait(rank);
      text += "rank " + std::to_string(rank) + ", status " + std::to_string(ended.status) + ": " + ended.err + "\n";
    }
    return text;
  }
  void send(int signal, int rank) const { ::kill(ranks_[static_cast<size_t>(rank)], signal); }
  Ended wait(int rank) { return program_.wait(ranks_[static_cast<size_t>(rank)]); }

 private:
  TrialProgram program_;
  std::vector<pid_t> ranks_;
};

struct Fate {
  const char* what;
  int signal;  // 0: none is sent
  int victim;
  const char* says;
  std::unique_ptr<Group> group;
};

// All at a time: most of it is waiting.
TEST(PeersTest, EndWithTheCauseWhateverBecomesOfOne) {
  Fate fates[] = {{"meet", SIGKILL, 0, "rank 0 has ended", nullptr},
                  {"meet", SIGKILL, 1, "rank 1 has ended", nullptr},
                  {"meet", SIGSTOP, 0, "rank 0 has given", nullptr},
                  {"meet", SIGSTOP, 1, "rank 1 has given", nullptr},
                  {"hang", 0, -1, "for 8 s: rank 0 is in the sum of a, rank 1 is in the gathering of b", nullptr}};
  Group patient("compute");
  for (Fate& fate : fates) fate.group = std::make_unique<Group>(fate.what);
  for (const Fate& fate : fates) {
    ASSERT_TRUE(eventually([&] { return fate.group->have_met(); })) << fate.group->why_not();
    if (fate.signal != 0) fate.group->send(fate.signal, fate.victim);
  }
  for (const Fate& fate : fates) {
    SCOPED_TRACE(fate.says);
    for (int rank = 0; rank < kRanks; ++rank) {
      const Ended ended = fate.group->wait(rank);
      if (rank == fate.victim) {
        EXPECT_EQ(ended.status, -SIGKILL);  // also the one that was stopped
        continue;
      }
      EXPECT_EQ(ended.status, 1);
      EXPECT_THAT(ended.err, HasSubstr(fate.says));
      EXPECT_EQ(ended.err, ended.last_error_line() + "\n");
    }
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const Ended ended = patient.wait(rank);  // for one that computes
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
  }
}

}  // namespace
}  // namespace dsat::trainer::testing
