// Failures: the cause is the last line of stderr, the status says whose it is, and nothing is left running.
// Budgets, broken files and killed ranks are given to the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dsat/base/ports.h"
#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr const char* kGpt = "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128 --ranks 2";

TEST(FailureTest, ARankThatExceedsItsMemoryIsTheCause) {
  for (int stage = 0; stage <= 3; ++stage) {
    TrialProgram program;
    program.write_config({{"train_micro_batch_size_per_gpu", 64}, {"zero_optimization", {{"stage", stage}}}});
    const Ended ended = program.run(std::string(kGpt) + " --device-memory 8MiB");
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.last_error_line(), ContainsRegex("^dsat-trial: OutOfMemoryError: out of memory: tried to "
                                                       "allocate .* in use .* of 8.39 MB \\(rank [01]\\)$"));
    EXPECT_FALSE(program.result().has_value());
  }
}

TEST(FailureTest, TheBudgetMayComeFromTheEnvironmentAndCoversModelStates) {
  TrialProgram program;
  program.write_config({{"train_micro_batch_size_per_gpu", 1}});
  const Ended ended = program.run("--model mlp --layers 4 --hidden 256", {"DSAT_DEVICE_MEMORY=1MiB"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.last_error_line(), HasSubstr("out of memory"));
}

TEST(FailureTest, AMicroBatchThatFitsExactlyTrains) {
  TrialProgram program;
  program.write_config({{"train_micro_batch_size_per_gpu", 4}, {"zero_optimization", {{"stage", 1}}}});
  ASSERT_EQ(program.run(kGpt).status, 0);
  const auto peak = program.result().value().at("peak_memory").get<int64_t>();
  EXPECT_EQ(program.run(std::string(kGpt) + " --device-memory " + std::to_string(peak)).status, 0);
  EXPECT_EQ(program.run(std::string(kGpt) + " --device-memory " + std::to_string(peak - 1)).status, 1);
}

// Trains until it is stopped.
class Endless {
 public:
  Endless() {
    program_.write_raw_config(R"({"train_micro_batch_size_per_gpu": 1})");
    pid_ = program_.start("--model mlp --layers 2 --hidden 16 --ranks 3 --steps 1000000000");
    EXPECT_TRUE(eventually([&] { return children_of(pid_).size() == 3; }));
    ranks_ = children_of(pid_);
  }
  Ended wait() { return program_.wait(pid_); }
  pid_t pid() const { return pid_; }
  const std::vector<pid_t>& ranks() const { return ranks_; }

 private:
  TrialProgram program_;
  pid_t pid_ = -1;
  std::vector<pid_t> ranks_;
};

TEST(FailureTest, ARankThatIsKilledEndsTheOthers) {
  Endless trial;
  ::kill(trial.ranks()[1], SIGKILL);
  const Ended ended = trial.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.last_error_line(), AllOf(HasSubstr("rank 1"), HasSubstr("signal 9")));
  for (const pid_t rank : trial.ranks()) EXPECT_FALSE(is_running(rank));
}

TEST(FailureTest, ARankThatIsStoppedEndsTheOthers) {
  Endless trial;
  ::kill(trial.ranks()[1], SIGSTOP);
  const Ended ended = trial.wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.last_error_line(), AllOf(HasSubstr("rank 1"), HasSubstr("no sign")));
  for (const pid_t rank : trial.ranks()) EXPECT_FALSE(is_running(rank));
}

// Each has a log of its own.
TEST(FailureTest, RanksOfAnotherLauncherAllNameTheFirstCause) {
  TrialProgram program;
  program.write_raw_config(R"({"train_micro_batch_size_per_gpu": 1})");
  const std::string options = "--model mlp --layers 2 --hidden 64 --steps 1000000000";
  const std::string port = "MASTER_PORT=" + std::to_string(free_port());
  std::vector<pid_t> pids;
  for (int rank = 0; rank < 3; ++rank) {
    const bool is_small = rank == 1;
    pids.push_back(program.start(options, {"RANK=" + std::to_string(rank), "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1",
                                           port, std::string("DSAT_DEVICE_MEMORY=") + (is_small ? "100KB" : "1GB")}));
  }
  for (const pid_t pid : pids) {
    const Ended ended = program.wait(pid);
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.last_error_line(), ContainsRegex("OutOfMemoryError: .*\\(rank 1\\)"));
  }
}

TEST(FailureTest, RanksEndWithTheProgramHoweverItEnds) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Endless trial;
    ::kill(trial.pid(), signal);
    EXPECT_EQ(trial.wait().status, -signal);
    for (const pid_t rank : trial.ranks()) EXPECT_TRUE(eventually([&] { return !is_running(rank); }));
  }
}

TEST(FailureTest, APortInUseIsNamed) {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  TrialProgram program;
  program.write_config({{"train_micro_batch_size_per_gpu", 1}});
  const Ended ended = program.run(kGpt, {"MASTER_PORT=" + std::to_string(ntohs(address.sin6_port))});
  ::close(fd);
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.last_error_line(), HasSubstr("EADDRINUSE"));
}

TEST(FailureTest, AFolderThatIsNotThereIsNotMade) {
  TrialProgram program;
  program.write_raw_config(R"({"train_micro_batch_size_per_gpu": 1, "autotuning":
      {"enabled": true, "start_profile_step": 0, "end_profile_step": 0, "metric_path": "/nowhere/m.json"}})");
  const Ended ended = program.run("--model mlp --layers 1 --hidden 8 --ranks 2");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.last_error_line(), HasSubstr("/nowhere/m.json: No such file"));
}

class UsageTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(UsageTest, IsRefusedInOneLineBeforeAnythingRuns) { expect_refused(GetParam()); }

constexpr const char* kGood = R"({"train_micro_batch_size_per_gpu": 1})";

INSTANTIATE_TEST_SUITE_P(Inputs, UsageTest,
                         ::testing::Values(BadInput{"--model bert", kGood, "--model bert: choose"},
                                           BadInput{"--ranks 2 --frobnicate", kGood, "unknown argument '--frobnicate'"},
                                           BadInput{"--ranks 2",
                                                    R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2})",
                                                    "train_batch_size"},
                                           BadInput{"", R"({"fp16": {"enabled": true}})", "use bf16.enabled instead"},
                                           BadInput{"", R"({"zero_optimization": {"stage": 4}})", "stage"},
                                           BadInput{"", "{\"a\": ", "ds_config.json"}));

}  // namespace
}  // namespace dsat::trainer::testing
