// The C++ layer: whatever a plugin's class throws becomes an error with its message, and nothing crosses the boundary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "dsat/testing.h"

namespace dsat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Throws where the option says, as the option says.
class Thrower : public Searcher<Thrower> {
 public:
  static Descriptor descriptor() {
    return {"test.thrower",
            "thrower",
            "1.2.3",
            "throws",
            {OptionSpec::choice("where", {"nowhere", "create", "start", "result", "exit"}, "nowhere", "in which call"),
             OptionSpec::choice("what", {"standard", "error", "number"}, "standard", "what is thrown")},
            7};
  }
  Thrower(Host host, const Options& options)
      : Searcher(host), where_(options.get<std::string>("where")), what_(options.get<std::string>("what")) {
    at("create");
  }
  void start(const Study&) {
    ask();
    at("start");
  }
  void on_result(const Result&) { at("result"); }
  void on_trial_exited(const Exit&) {
    at("exit");
    finish("done");
  }

 private:
  void ask() {
    TrialRequest request;
    request.overrides["train_micro_batch_size_per_gpu"] = 1;
    create_trial(request);
  }
  void at(const std::string& place) const {
    if (place != where_) return;
    if (what_ == "standard") throw std::runtime_error("a standard exception in " + place);
    if (what_ == "error") throw Error(DSAT_DATA_LOSS, "an error in " + place);
    throw 42;
  }
  std::string where_, what_;
};

class Measurer : public Profiler<Measurer> {
 public:
  static Descriptor descriptor() { return {"test.measurer", "measurer", "1.0.0", "measures", {}}; }
  Measurer(Host host, const Options&) : Profiler(host) {}
  void start(const Study&) {
    set_profile({{"schema", 1}});
    finish("measured");
  }
  void on_result(const Result&) {}
  void on_trial_exited(const Exit&) {}
  std::string save() const { return "state"; }
  void restore(const Study&, std::string_view state) {
    if (state != "state") throw Error("not mine");
  }
};

class Wisher : public Thrower {
 public:
  static Descriptor descriptor() {
    Descriptor own = Thrower::descriptor();
    own.study["zero_stages"] = {0};
    return own;
  }
};

Study study() {
  Study study;
  study.metric = "throughput";
  study.zero_stages = {1};
  study.base_config = Json::object();
  study.space = Json::object();
  study.limits.max_trials = 10;
  study.limits.max_concurrent_trials = 1;
  return study;
}

testing::Bench thrower(const std::string& where, const std::string& what) {
  return testing::Bench(testing::factory<Thrower>(), "test.thrower", study(),
                        [](const testing::Trial&) {
                          return testing::Answer::completed({{"throughput", 1}});
                        },
                        {{"where", where}, {"what", what}});
}

TEST(PluginLayer, AnExceptionBecomesAnErrorWithItsMessage) {
  for (const char* where : {"create", "start", "result", "exit"}) {
    auto bench = thrower(where, "standard");
    EXPECT_FALSE(bench.run());
    EXPECT_THAT(bench.error(), HasSubstr(std::string("a standard exception in ") + where));
    auto other = thrower(where, "error");
    EXPECT_FALSE(other.run());
    EXPECT_THAT(other.error(), HasSubstr(std::string("an error in ") + where));
  }
}

TEST(PluginLayer, SomethingThatIsNoExceptionIsCaughtToo) {
  for (const char* where : {"create", "start", "result", "exit"}) {
    auto bench = thrower(where, "number");
    EXPECT_FALSE(bench.run());
    EXPECT_THAT(bench.error(), HasSubstr("unknown exception"));
  }
}

TEST(PluginLayer, TheOpsOfAFailedEventAreDropped) {
  auto bench = thrower("start", "standard");
  EXPECT_FALSE(bench.run());
  EXPECT_TRUE(bench.asked().empty());
  EXPECT_EQ(bench.open(), 0u);
}

// Asks for the overrides that a test says.
class Asker : public Searcher<Asker> {
 public:
  static Descriptor descriptor() { return {"test.asker", "asker", "1.0.0", "asks once", {}}; }
  Asker(Host host, const Options&) : Searcher(host) {}
  void start(const Study&) { create_trial({overrides, ""}); }
  void on_result(const Result&) {}
  void on_trial_exited(const Exit&) {}
  static inline Json overrides;
};

std::string error_of_asking(Json overrides) {
  Asker::overrides = std::move(overrides);
  testing::Bench bench(testing::factory<Asker>(), "asker", study(), [](const testing::Trial&) {
    return testing::Answer::completed({{"throughput", 1}});
  });
  bench.run();
  return bench.error();
}

TEST(PluginLayer, OverridesThatJsonCannotHoldAreAnErrorThatNamesTheKey) {
  EXPECT_EQ(error_of_asking({{"a", {{"b", 1.5}}}}), "");
  EXPECT_THAT(error_of_asking({{"a", {{"b", std::nan("")}}}}), HasSubstr("overrides.a.b is NaN"));
  EXPECT_THAT(error_of_asking({{"a", {1, INFINITY}}}), HasSubstr("overrides.a.1 is infinite"));
  EXPECT_THAT(error_of_asking({{"a", "\xff"}}), AllOf(HasSubstr("create_trial: overrides"), HasSubstr("not UTF-8")));
}

TEST(PluginLayer, TheCodeOfAnErrorCrosses) {
  auto bench = thrower("nowhere", "error");
  const dsat_factory& factory = testing::factory<Thrower>();
  const std::string options = R"({"where": "create", "what": "error"})";
  dsat_strategy* strategy = nullptr;
  EXPECT_EQ(factory.create("test.thrower", &bench.host(), {options.data(), options.size()}, &strategy), DSAT_DATA_LOSS);
  EXPECT_EQ(strategy, nullptr);
}

TEST(PluginLayer, OptionsThatAreNotJsonAreAnError) {
  auto bench = thrower("nowhere", "error");
  dsat_strategy* strategy = nullptr;
  for (const std::string options : {"", "{", "[]", "{\"where\": 3}"}) {
    EXPECT_NE(
        testing::factory<Thrower>().create("test.thrower", &bench.host(), {options.data(), options.size()}, &strategy),
        DSAT_OK)
        << options;
  }
  EXPECT_EQ(strategy, nullptr);
}

TEST(PluginLayer, AnUnknownIdIsNotFound) {
  auto bench = thrower("nowhere", "error");
  dsat_strategy* strategy = nullptr;
  EXPECT_EQ(testing::factory<Thrower>().create("test.nobody", &bench.host(), {"{}", 2}, &strategy), DSAT_NOT_FOUND);
}

TEST(PluginLayer, TheDescriptorIsWhatTheClassSays) {
  const dsat_descriptor* descriptor = testing::factory<Thrower>().descriptor(0);
  EXPECT_STREQ(descriptor->id, "test.thrower");
  EXPECT_STREQ(descriptor->version, "1.2.3");
  EXPECT_EQ(descriptor->state_version, 7u);
  EXPECT_EQ(descriptor->struct_size, sizeof(dsat_descriptor));
  const Json options = Json::parse(descriptor->options_json);
  EXPECT_EQ(options.size(), 2u);
  EXPECT_EQ(options[0]["type"], "choice");
  EXPECT_EQ(descriptor->study_json, nullptr);
  EXPECT_STREQ(detail::descriptor<Wisher>()->study_json, R"({"zero_stages":[0]})");
}

TEST(PluginLayer, OneLibraryMayOfferBothKinds) {
  using Both = detail::Factories<Thrower, Measurer>;
  const auto* searchers = static_cast<const dsat_factory*>(Both::get(DSAT_SEARCHER_FACTORY));
  const auto* profilers = static_cast<const dsat_factory*>(Both::get(DSAT_PROFILER_FACTORY));
  ASSERT_NE(searchers, nullptr);
  ASSERT_NE(profilers, nullptr);
  EXPECT_EQ(searchers->count, 1u);
  EXPECT_STREQ(profilers->descriptor(0)->id, "test.measurer");
  EXPECT_EQ(Both::get("dsat.unheard-of/1"), nullptr);
}

TEST(PluginLayer, StateIsKeptWhereTheClassKeepsIt) {
  auto without = thrower("nowhere", "error");
  EXPECT_EQ(without.save(), "");
  testing::Bench with(testing::factory<Measurer>(), "test.measurer", study(),
                      [](const testing::Trial&) { return testing::Answer(); });
  EXPECT_EQ(with.save(), "state");
}

class SavesOnly : public Thrower {
 public:
  using Thrower::Thrower;
  std::string save() const { return "state"; }
};
class RestoresOnly : public Thrower {
 public:
  void restore(const Study&, std::string_view) {}
};
class KeepsToItself : public Thrower {
 private:
  [[maybe_unused]] std::string save() const { return "state"; }
  [[maybe_unused]] void restore(const Study&, std::string_view) {}
};
class SealedSavesOnly final : public Thrower {
 public:
  std::string save() const { return "state"; }
};
class Sealed final : public Thrower {};

// What DSAT_PLUGIN asserts of a class.
TEST(PluginLayer, OneOfSaveAndRestoreAndPrivateOnesAreNoState) {
  EXPECT_TRUE(detail::kStateIsWhole<Thrower>) << "neither";
  EXPECT_TRUE(detail::kStateIsWhole<Measurer>) << "both";
  EXPECT_TRUE(detail::kStateIsWhole<Sealed>);
  EXPECT_FALSE(detail::kStateIsWhole<SavesOnly>);
  EXPECT_FALSE(detail::kStateIsWhole<RestoresOnly>);
  EXPECT_FALSE(detail::kStateIsWhole<KeepsToItself>);
  EXPECT_FALSE(detail::kStateIsWhole<SealedSavesOnly>);
}

class Mumbler : public Thrower {
 public:
  static Descriptor descriptor() {
    Descriptor own = Thrower::descriptor();
    own.options = {OptionSpec::integer("n", 1, "a \xff in it")};
    own.study["\xfe"] = 1;
    return own;
  }
};

TEST(PluginLayer, AByteOfADescriptorThatIsNotUtf8IsReplaced) {
  const dsat_descriptor* descriptor = detail::descriptor<Mumbler>();
  EXPECT_EQ(Json::parse(descriptor->options_json)[0]["help"], "a \xef\xbf\xbd in it");
  EXPECT_STREQ(descriptor->study_json, "{\"\xef\xbf\xbd\":1}");
}

TEST(PluginLayer, AnOutcomeOfALaterVersionIsAFailure) {
  dsat_exit raw{};
  raw.outcome = 99;
  EXPECT_EQ(Exit(raw).outcome(), Outcome::failed);
  raw.outcome = -1;
  EXPECT_EQ(Exit(raw).outcome(), Outcome::failed);
  raw.outcome = DSAT_TRIAL_LOST;
  EXPECT_EQ(Exit(raw).outcome(), Outcome::lost);
  EXPECT_FALSE(Exit(raw).peak_bytes());
}

}  // namespace
}  // namespace dsat
