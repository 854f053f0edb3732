// The C interface of libdsat.so: what it refuses, what it delivers, and several studies in one process.
#include "dsat/dsat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_dir.h"

namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const char* options) {
  char* error = nullptr;
  dsat_tuning* tuning = dsat_tuning_create(options, &error);
  EXPECT_EQ(tuning, nullptr);
  const std::string message = error == nullptr ? "no error" : error;
  dsat_text_free(error);
  return message;
}

std::string error_of(const Json& options) { return error_of(options.dump().c_str()); }

Json simulation(const std::filesystem::path& dir, const char* searcher = "asha") {
  return {{"runner", "sim"},         {"sim", DSAT_SOURCE_DIR "/examples/sim/8-gpus-a100-gpt2-xl.json"},
          {"max-trials", 12},        {"searcher", searcher},
          {"zero-stages", {1, 2}},   {"no-baseline", true},
          {"global-batch", nullptr}, {"output-dir", dir.string()}};
}

struct Tuning {
  explicit Tuning(const Json& options) : handle(dsat_tuning_create(options.dump().c_str(), &error)) {}
  ~Tuning() {
    dsat_tuning_destroy(handle);
    dsat_text_free(error);
  }
  int run() {
    return dsat_tuning_run(
        handle,
        [](void* data, const char* event) { static_cast<std::vector<Json>*>(data)->push_back(Json::parse(event)); },
        &events);
  }
  Json result() const { return Json::parse(dsat_tuning_result(handle)); }
  char* error = nullptr;
  dsat_tuning* handle;
  std::vector<Json> events;
};

TEST(Library, HasItsVersions) {
  EXPECT_GE(dsat_api_version(), unsigned{DSAT_API_VERSION});
  EXPECT_THAT(dsat_version(), testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+"));
}

TEST(Library, RefusesOptionsWithOneLine) {
  EXPECT_THAT(error_of("{"), HasSubstr("the options"));
  EXPECT_THAT(error_of("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("`command`"));
  EXPECT_THAT(error_of(nullptr), HasSubstr("`command`"));
  EXPECT_THAT(error_of(Json{{"command", "python3 train.py"}}), HasSubstr("array of words"));
  EXPECT_THAT(error_of(Json{{"max-trails", 3}}), HasSubstr("--max-trials"));
  EXPECT_THAT(error_of(Json{{"max-trials", "many"}}), HasSubstr("max-trials"));
  EXPECT_THAT(error_of(Json{{"max-trials", {{"a", 1}}}}), HasSubstr("max-trials takes texts, numbers and true"));
  EXPECT_THAT(error_of(Json{{"json", true}}), HasSubstr("is for dsat-host"));
  EXPECT_THAT(error_of(Json{{"searcher", "nobody"}}), HasSubstr("no plugin 'nobody'"));
  EXPECT_THAT(error_of(Json{{"searcher", "asha"}, {"factor", 2}, {"command", {"true"}}}), HasSubstr("--factor"));
  EXPECT_THAT(error_of(Json{{"command", {"true"}}}), Not(HasSubstr("\n")));
}

TEST(Library, TakesNullWhereThereIsNothing) {
  EXPECT_EQ(dsat_tuning_create("{", nullptr), nullptr);
  EXPECT_EQ(dsat_tuning_resume(nullptr, nullptr, nullptr), nullptr);
  EXPECT_EQ(dsat_tuning_run(nullptr, nullptr, nullptr), DSAT_TUNING_WRONG_USE);
  EXPECT_EQ(dsat_tuning_result(nullptr), nullptr);
  EXPECT_EQ(dsat_tuning_dir(nullptr), nullptr);
  dsat_tuning_stop(nullptr);
  dsat_tuning_destroy(nullptr);
  dsat_text_free(nullptr);
}

TEST(Library, DeliversEventsAndAResult) {
  const dsat::TempDir dir;
  Tuning tuning(simulation(dir.path() / "run"));
  ASSERT_NE(tuning.handle, nullptr) << tuning.error;
  EXPECT_EQ(dsat_tuning_dir(tuning.handle), (dir.path() / "run").string());
  EXPECT_EQ(dsat_tuning_result(tuning.handle), nullptr);
  EXPECT_EQ(tuning.run(), DSAT_TUNING_BEST_FOUND);
  EXPECT_EQ(tuning.events.front()["event"], "start");
  EXPECT_EQ(tuning.events.front()["max_trials"], 12);
  EXPECT_EQ(tuning.events.back()["event"], "result");
  EXPECT_EQ(tuning.events.back()["result"], tuning.result());
  EXPECT_EQ(tuning.result()["status"], "completed");
  EXPECT_EQ(tuning.run(), DSAT_TUNING_WRONG_USE) << "a tuning runs once";
}

TEST(Library, GoesOnWhereAStudyWasStopped) {
  const dsat::TempDir dir;
  {
    Tuning tuning(simulation(dir.path() / "run"));
    ASSERT_NE(tuning.handle, nullptr) << tuning.error;
    dsat_tuning_stop(tuning.handle);
    EXPECT_EQ(tuning.run(), DSAT_TUNING_INTERRUPTED);
    char* error = nullptr;
    EXPECT_EQ(dsat_tuning_resume((dir.path() / "run").c_str(), nullptr, &error), nullptr) << "it is held";
    EXPECT_NE(error, nullptr);
    dsat_text_free(error);
  }
  char* error = nullptr;
  dsat_tuning* tuning = dsat_tuning_resume((dir.path() / "run").c_str(), "{\"max-trials\": 14}", &error);
  ASSERT_NE(tuning, nullptr) << error;
  EXPECT_EQ(dsat_tuning_run(tuning, nullptr, nullptr), DSAT_TUNING_BEST_FOUND);
  dsat_tuning_destroy(tuning);
  EXPECT_EQ(dsat_tuning_resume((dir.path() / "run").c_str(), "{\"command\": [\"true\"]}", &error), nullptr);
  EXPECT_THAT(error, HasSubstr("keeps its command"));
  dsat_text_free(error);
}

TEST(Library, RunsSeveralStudiesAtOnce) {
  const dsat::TempDir dir;
  std::vector<std::string> alone;
  for (const bool together : {false, true}) {
    std::vector<std::thread> threads;
    std::vector<std::string> results(4);
    const char* searchers[] = {"asha", "random", "guided", "binary"};
    for (size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back([&, i] {
        Tuning tuning(simulation(dir.path() / (std::to_string(i) + (together ? "b" : "a")), searchers[i]));
        if (tuning.handle != nullptr && tuning.run() == 0) results[i] = tuning.result()["best"]["config"].dump();
      });
      if (!together) threads.back().join(), threads.pop_back();
    }
    for (std::thread& thread : threads) thread.join();
    if (!together) alone = results;
    EXPECT_EQ(results, alone);
    EXPECT_THAT(results, Not(testing::Contains("")));
  }
}

}  // namespace
