// Threads of a rank: how many compute, and what a fork leaves of their pool.
// Real processes are forked.
#include "ranks/rank_process.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "dsat/base/ports.h"
#include "ranks/launcher.h"

namespace dsat::trainer {
namespace {

TEST(RankProcessTest, ARankComputesOnOneThread) {
  const RankResult result = launch(1, [](int) {
    const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
    const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
    if (set != nullptr) set(2);
    at::set_num_threads(2);
    use_one_thread();
    const int blas = get != nullptr ? get() : 1, own = at::get_num_threads();
    if (blas == 1 && own == 1) return RankResult{};
    return RankResult{FailureKind::error, std::to_string(blas) + " and " + std::to_string(own) + " threads"};
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// The workers of a loader do. LibTorch makes its pool again in the first thread that asks after a fork; while it does,
// others that ask fail.
TEST(RankProcessTest, ThreadsOfARankMayAskForThePoolAtOnce) {
  at::set_num_threads(at::get_num_threads());  // now there is a pool to be made again
  for (int round = 0; round < 20; ++round) {
    const uint16_t port = free_port();
    const RankResult result = launch(1, [&](int rank) {
      return run_rank({}, nullptr, {rank, 1, "127.0.0.1", port}, [](World&) {
        std::atomic<bool> begin{false};
        std::vector<std::future<void>> threads(8);
        for (auto& thread : threads) {
          thread = std::async(std::launch::async, [&] {
            while (!begin) continue;
            at::set_num_threads(1);
          });
        }
        begin = true;
        for (auto& thread : threads) thread.get();
      });
    });
    ASSERT_EQ(result.kind, FailureKind::none) << result.message;
  }
}

}  // namespace
}  // namespace dsat::trainer
