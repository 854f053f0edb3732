// Finding plugins and reading their options, with the fixture plugins and with options declared by hand.
#include "dsat/host/plugins.h"

#include "host/study/study_fixture.h"
#include "plugin/plugin_strategy.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;

// An environment variable for the life of this object.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(PluginsTest, ABareNameIsLookedUpOnThePathAndAPathIsTakenAsItIs) {
  const Variable path("DSAT_PLUGIN_PATH", "/nowhere::" DSAT_FIXTURE_PLUGINS);
  EXPECT_EQ(find_plugin("walker").value(), fixture_plugin("walker"));
  EXPECT_EQ(find_plugin("libwalker.so").value(), fixture_plugin("walker"));
  EXPECT_EQ(find_plugin("./odd/libx.so").value(), fs::path("./odd/libx.so"));
  EXPECT_EQ(plugin_search_path().at(0), fs::path("/nowhere"));
  EXPECT_EQ(plugin_search_path().at(1), fs::path(DSAT_FIXTURE_PLUGINS)) << "an empty entry is none";
}

TEST(PluginsTest, AnUnknownNameSaysWhereItWasLookedFor) {
  const Variable path("DSAT_PLUGIN_PATH", "/nowhere");
  const std::string text = find_plugin("nonesuch").status().message();
  EXPECT_THAT(text, HasSubstr("libnonesuch.so"));
  EXPECT_THAT(text, HasSubstr("/nowhere"));
  EXPECT_FALSE(find_plugin("").ok());
}

TEST(PluginsTest, AFileOfThisFolderIsNamedWithTheWordsToType) {
  const TempDir folder;
  write_text(folder.path() / "libmine.so", "");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const std::string by_file = find_plugin("libmine.so").status().message();
  const std::string by_name = find_plugin("mine").status().message();
  fs::current_path(before);
  EXPECT_THAT(by_file, HasSubstr("type ./libmine.so"));
  EXPECT_THAT(by_name, HasSubstr("type ./libmine.so"));
  EXPECT_THAT(find_plugin("libmine.so").status().message(), HasSubstr("`dsat-host plugins` lists"));
}

TEST(PluginsTest, DescribesAllThatALibraryOffers) {
  const auto all = describe_plugin(fixture_plugin("scripted"), in_this_process());
  ASSERT_TRUE(all.ok()) << all.status().message();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->at(0).id, "test.scripted");
  EXPECT_EQ(all->at(0).kind, PluginKind::searcher);
  EXPECT_EQ(all->at(1).kind, PluginKind::profiler);
  EXPECT_EQ(all->at(1).abi_major, 1u);
}

class OpenPluginTest : public StudyTest {};

// A study opens a plugin once: what describes it keeps it open for what runs it.
TEST_F(OpenPluginTest, AStrategyComesFromTheLibraryThatWasDescribed) {
  const fs::path file = dir() / "libwalker.so";
  fs::copy_file(fixture_plugin("walker"), file);
  const PluginInfo walker = find_strategy(file.string(), PluginKind::searcher, in_this_process()).value();
  fs::remove(file);
  const Json options = parse_plugin_options(walker, Json::object()).value();
  EXPECT_NE(PluginStrategy::create(walker, options, 42, [](int, std::string_view) {}), nullptr);
  EXPECT_FALSE(describe_plugin(file, in_this_process()).ok());
}

class PluginOptionsTest : public ::testing::Test {
 protected:
  PluginOptionsTest() {
    info_.name = "test";
    info_.options = Json::parse(R"([
      {"name": "rungs", "type": "int", "default": 5, "min": 1, "max": 9, "help": ""},
      {"name": "rate", "type": "number", "default": 0.5, "min": 0, "max": 1, "help": ""},
      {"name": "fast", "type": "bool", "default": false, "help": ""},
      {"name": "title", "type": "string", "default": "", "help": ""},
      {"name": "mode", "type": "choice", "default": "min", "choices": ["min", "max"], "help": ""}])");
  }
  Json values(const Json& given) const { return parse_plugin_options(info_, given).value(); }
  std::string why_not(const Json& given) const {
    const auto parsed = parse_plugin_options(info_, given);
    EXPECT_FALSE(parsed.ok()) << given;
    return parsed.status().message();
  }
  PluginInfo info_;
};

TEST_F(PluginOptionsTest, FillsInDefaultsAndReadsTextsAndValues) {
  EXPECT_EQ(values(Json::object()).dump(), R"({"rungs":5,"rate":0.5,"fast":false,"title":"","mode":"min"})");
  EXPECT_EQ(values({{"rungs", "9"}, {"rate", "1e-1"}, {"fast", "on"}, {"title", "7"}, {"mode", "max"}}).dump(),
            R"({"rungs":9,"rate":0.1,"fast":true,"title":"7","mode":"max"})");
  EXPECT_EQ(values({{"rungs", 2}, {"rate", 1}, {"fast", true}}).dump(),
            R"({"rungs":2,"rate":1.0,"fast":true,"title":"","mode":"min"})");
}

TEST_F(PluginOptionsTest, RefusesWhatIsNoValueOfItsType) {
  EXPECT_THAT(why_not({{"rungs", "five"}}), AllOf(HasSubstr("option --rungs"), HasSubstr("'five'")));
  for (const char* text : {"", "5x", "1.5", "0x5", " 5", "99999999999999999999"}) why_not({{"rungs", text}});
  for (const char* text : {"", "fast", "nan", "inf", "0.5s"}) why_not({{"rate", text}});
  EXPECT_THAT(why_not({{"fast", "maybe"}}), HasSubstr("true or false"));
  EXPECT_THAT(why_not({{"mode", "median"}}), HasSubstr("min, max"));
}

TEST_F(PluginOptionsTest, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(why_not({{"rungs", "0"}}), HasSubstr("at least 1"));
  EXPECT_THAT(why_not({{"rungs", "-3"}}), HasSubstr("at least 1"));
  EXPECT_THAT(why_not({{"rungs", "10"}}), HasSubstr("at most 9"));
  EXPECT_THAT(why_not({{"rate", "1.01"}}), HasSubstr("at most 1"));
}

TEST_F(PluginOptionsTest, AnUnknownOptionIsRefusedWithTheListOfThoseThereAre) {
  EXPECT_THAT(why_not({{"rung", "1"}}),
              AllOf(HasSubstr("option --rung:"), HasSubstr("--rungs --rate --fast --title --mode")));
  info_.options = Json::array();
  EXPECT_THAT(why_not({{"rung", "1"}}), HasSubstr("it has none"));
}

}  // namespace
}  // namespace dsat::host
