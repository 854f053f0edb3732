// What the test bench refuses, and that it says why: with the words of a study.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "dsat/testing.h"

namespace dsat {
namespace {

using ::testing::AllOf;
using testing::Bench;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A searcher whose start is what a test says.
class Actor : public Searcher<Actor> {
 public:
  static Descriptor descriptor() { return {"test.actor", "actor", "1.0.0", "does what a test says", {}}; }
  Actor(Host host, const Options&) : Searcher(host) {}
  void start(const Study&) { on_start(*this); }
  void on_result(const Result&) {}
  void on_trial_exited(const Exit&) {}
  using Searcher::create_trial;
  using Searcher::finish;
  using Searcher::host;
  using Searcher::stop_trial;

  static inline std::function<void(Actor&)> on_start;
};

Study study_of_three() {
  Study study;
  study.limits.max_trials = 3;
  return study;
}

testing::Answer answer(const testing::Trial&) { return testing::Answer::completed({{"x", 1}}); }

// The text of a study, where the strategy itself says only that something was refused.
TEST(BenchRefusals, ARefusalSaysWhyAsAStudyDoes) {
  const auto error_of = [&](const std::function<void(Actor&)>& start) {
    Actor::on_start = start;
    Bench run(testing::factory<Actor>(), "actor", study_of_three(), answer);
    run.run();
    return run.error();
  };
  EXPECT_THAT(error_of([](Actor& s) { s.stop_trial(5); }), AllOf(HasSubstr("status 5"), HasSubstr("no trial 5")));
  EXPECT_THAT(error_of([](Actor& s) { s.finish("done", 7); }), AllOf(HasSubstr("status 5"), HasSubstr("no trial 7")));
  EXPECT_THAT(error_of([](Actor& s) { s.create_trial({Json::object(), "", 9}); }), HasSubstr("its parent"));
  EXPECT_THAT(error_of([](Actor& s) { s.create_trial({Json::array(), ""}); }), HasSubstr("overrides_json is not"));
  EXPECT_THAT(error_of([](Actor& s) {
                s.finish("done");
                s.create_trial({});
              }),
              HasSubstr("after finish"));
  EXPECT_THAT(error_of([](Actor& s) {
                const dsat_host* host = s.host().raw();
                dsat_trial_id id = 0;
                throw Error(host->create_trial(host, nullptr, &id), "no request");
              }),
              AllOf(HasSubstr("start: no request"), HasSubstr("NULL argument")));
}

TEST(BenchRefusals, ATrialThatIsAskedForFromAnotherThreadIsRefused) {
  const auto elsewhere = [](Actor& s) {
    std::thread([&] {
      const dsat_host* host = s.host().raw();
      const dsat_trial_request request{sizeof(request), 0, DSAT_NO_TRIAL, {"{}", 2}, {nullptr, 0}};
      dsat_trial_id id = 0;
      EXPECT_EQ(host->create_trial(host, &request, &id), DSAT_FAILED_PRECONDITION);
      host->set_error(host, {"not mine", 8});
    }).join();
  };
  const std::string words = "from another thread";
  Actor::on_start = elsewhere;
  Bench run(testing::factory<Actor>(), "actor", study_of_three(), answer);
  EXPECT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.asked().empty());
  EXPECT_THAT(run.stray_op(), HasSubstr(words));
  EXPECT_THAT(run.logs(), ElementsAre(run.stray_op()));

  Actor::on_start = [&](Actor& s) {
    elsewhere(s);
    throw Error("it was in vain");
  };
  Bench failing(testing::factory<Actor>(), "actor", study_of_three(), answer);
  EXPECT_FALSE(failing.run());
  EXPECT_THAT(failing.error(), AllOf(HasSubstr("it was in vain"), HasSubstr(words)));
}

TEST(BenchRefusals, AnOpInCreateIsRefusedWithItsReason) {
  dsat_factory factory = testing::factory<Actor>();
  factory.create = [](const char*, const dsat_host* host, dsat_str, dsat_strategy**) noexcept -> dsat_status {
    return host->stop_trial(host, 0);
  };
  Bench bench(factory, "actor", study_of_three(), answer);
  EXPECT_THAT(bench.error(), AllOf(HasSubstr("create: stop_trial"), HasSubstr("outside an event")));
  EXPECT_EQ(bench.stray_op(), "");
}

// As dsat-host reads it.
TEST(BenchRefusals, ATextWithoutBytesIsEmptyWhateverItsSizeSays) {
  Actor::on_start = [](Actor& s) {
    const dsat_host* host = s.host().raw();
    host->log(host, 1, {nullptr, 5});
    host->log(nullptr, 1, {nullptr, 5});
    dsat_trial_id id = 0;
    const dsat_trial_request request{sizeof(request), 0, DSAT_NO_TRIAL, {nullptr, 7}, {nullptr, 7}};
    EXPECT_EQ(host->create_trial(host, &request, &id), DSAT_INVALID_ARGUMENT);
    EXPECT_EQ(host->finish(host, {nullptr, 7}, DSAT_NO_TRIAL), DSAT_OK);
  };
  Bench run(testing::factory<Actor>(), "actor", study_of_three(), answer);
  EXPECT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.logs(), (std::vector<std::string>{""}));
  EXPECT_EQ(run.finish_reason(), "");
}

}  // namespace
}  // namespace dsat
