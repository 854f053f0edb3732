// The page of a study that runs, on a machine that gives no further thread.
#include "commands/current_report.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <future>

namespace dsat::cli {
namespace {

// While it lives no thread begins: none gets a stack of this size. A limit of processes does not hold for root.
class NoFurtherThreads {
 public:
  NoFurtherThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 60);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoFurtherThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoFurtherThreads(const NoFurtherThreads&) = delete;
  NoFurtherThreads& operator=(const NoFurtherThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST(CurrentReport, WithoutAThreadThereIsNoPageAndTheStudyGoesOn) {
  const NoFurtherThreads limit;
  EXPECT_THROW(std::thread([] {}), std::system_error);
  bool written = false;
  {
    CurrentReport report("/nowhere", [&](const auto&) { written = true; });
    report.on_trial_ended({});
  }
  EXPECT_FALSE(written);
}

TEST(CurrentReport, WithoutAThreadForAPageItIsWrittenAllTheSame) {
  std::promise<std::filesystem::path> written;
  CurrentReport report("/nowhere", [&](const std::filesystem::path& dir) { written.set_value(dir); });
  const NoFurtherThreads limit;
  report.on_trial_ended({});
  EXPECT_EQ(written.get_future().get(), "/nowhere");
}

}  // namespace
}  // namespace dsat::cli
