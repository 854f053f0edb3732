// The built libraries: what they export, how they describe themselves, and that they run when loaded.
// Each is loaded by dlopen, as the host does.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "surface.h"

namespace dsat::tests {
namespace {

struct Loaded {
  explicit Loaded(const std::string& name)
      : handle(dlopen((std::string(DSAT_PLUGIN_FOLDER "/lib") + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle != nullptr) entry = static_cast<const dsat_plugin_entry*>(dlsym(handle, "dsat_plugin_entry_v1"));
  }
  ~Loaded() {
    if (handle != nullptr) dlclose(handle);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  const dsat_factory* factory(const char* id) const { return static_cast<const dsat_factory*>(entry->get_factory(id)); }
  void* handle;
  const dsat_plugin_entry* entry = nullptr;
};

class LoadedSearcher : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Each, LoadedSearcher, ::testing::Values("asha", "binary", "random", "grid"));

TEST_P(LoadedSearcher, RunsAStudy) {
  const Loaded library(GetParam());
  ASSERT_NE(library.entry, nullptr) << dlerror();
  EXPECT_EQ(library.entry->magic, DSAT_MAGIC);
  EXPECT_EQ(library.entry->abi_major, DSAT_ABI_MAJOR);
  const dsat_factory* factory = library.factory(DSAT_SEARCHER_FACTORY);
  ASSERT_NE(factory, nullptr);
  EXPECT_EQ(library.factory(DSAT_PROFILER_FACTORY), nullptr);
  EXPECT_EQ(library.factory("dsat.something-else/1"), nullptr);
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2, 3}));
  testing::Bench bench(*factory, std::string("dsat.") + GetParam(), study,
                       [&](const testing::Trial& trial) { return surface.answer(trial); });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_NE(bench.best(), kNoTrial);
}

TEST(LoadedProfiler, IsAProfiler) {
  const Loaded library("profiler");
  ASSERT_NE(library.entry, nullptr) << dlerror();
  ASSERT_NE(library.factory(DSAT_PROFILER_FACTORY), nullptr);
  EXPECT_EQ(library.factory(DSAT_SEARCHER_FACTORY), nullptr);
  EXPECT_STREQ(library.factory(DSAT_PROFILER_FACTORY)->descriptor(0)->name, "profiler");
}

TEST(LoadedPlugins, OnlyGuidedWishesForAllStagesAndAShortProfile) {
  const auto wishes = [](const char* name) {
    const Loaded library(name);
    const char* study = library.factory(DSAT_SEARCHER_FACTORY)->descriptor(0)->study_json;
    return study == nullptr ? Json() : Json::parse(study);
  };
  EXPECT_EQ(wishes("guided"), (Json{{"zero_stages", {0, 1, 2, 3}}, {"profile_trials", 2}}));
  for (const char* name : {"asha", "binary", "grid", "random"}) EXPECT_TRUE(wishes(name).empty()) << name;
}

TEST(LoadedPlugins, TheirOptionsAreDeterminedsWithItsDefaults) {
  const auto options = [](const char* name) {
    const Loaded library(name);
    Json defaults = Json::object();
    for (const Json& option : Json::parse(library.factory(DSAT_SEARCHER_FACTORY)->descriptor(0)->options_json)) {
      defaults[option["name"].get<std::string>()] = option["default"];
    }
    return defaults;
  };
  EXPECT_EQ(options("asha"), (Json{{"max-rungs", 5},
                                   {"min-binary-search-trials", 3},
                                   {"divisor", 2},
                                   {"asha-early-stopping", 0},
                                   {"search-range-factor", 1.0}}));
  EXPECT_EQ(options("binary"), (Json{{"search-range-factor", 1.0}, {"exact", false}}));  // exact: dsat's own
  EXPECT_EQ(options("grid"), (Json{{"num-tuning-micro-batch-sizes", 3}, {"early-stopping", 0}}));
  EXPECT_EQ(options("random"), (Json{{"trials-per-random-config", 5}, {"early-stopping", 0}}));
}

}  // namespace
}  // namespace dsat::tests
