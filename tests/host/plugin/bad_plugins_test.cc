// Plugins that break the ABI are refused by name and reason; one that breaks it at work fails its study alone.
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::StartsWith;

class BadPluginsTest : public StudyTest {
 protected:
  static std::string why_not(const fs::path& file) {
    const auto described = describe_plugin(file, in_this_process());
    EXPECT_FALSE(described.ok()) << file;
    if (described.ok()) return "";
    EXPECT_EQ(described.status().code(), Status::Code::invalid);
    const std::string text = described.status().message();
    EXPECT_EQ(text.find("plugin " + file.string() + ": "), 0u) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  StudyResult run_with(const std::string& plugin) {
    StudyOptions given = options(plugin);
    given.output_dir = dir() / plugin;
    Session session(plan_of(given));
    return session.run_new();
  }
};

TEST_F(BadPluginsTest, WhatIsNoPluginOfThisAbiIsRefusedBeforeAnythingOfItRuns) {
  EXPECT_THAT(why_not(fixture_plugin("bad_major")), AllOf(HasSubstr("plugin ABI 2"), HasSubstr("dsat has 1")));
  EXPECT_THAT(why_not(fixture_plugin("bad_magic")), HasSubstr("wrong magic"));
  EXPECT_THAT(why_not(fixture_plugin("bad_no_symbol")), HasSubstr("exports no dsat_plugin_entry_v1"));
  EXPECT_THAT(why_not(fixture_plugin("bad_offers_nothing")), HasSubstr("offers neither"));
  EXPECT_THAT(why_not(fixture_plugin("bad_descriptor")),
              AllOf(HasSubstr("descriptor(0)"), HasSubstr("NULL"), HasSubstr("count is 1")));
  EXPECT_THAT(why_not(fixture_plugin("bad_options")), AllOf(HasSubstr("'Camel'"), HasSubstr("kebab-case")));
  EXPECT_THAT(why_not(fixture_plugin("bad_options_twice")), AllOf(HasSubstr("option 'a'"), HasSubstr("twice")));
}

TEST_F(BadPluginsTest, AStructureIsReadNoFartherThanItSaysItReaches) {
  EXPECT_THAT(why_not(fixture_plugin("bad_short_entry")), HasSubstr("no get_factory"));
  EXPECT_THAT(why_not(fixture_plugin("bad_short_factory")),
              AllOf(HasSubstr("searcher factory"), HasSubstr("struct_size is 16"), HasSubstr("before create")));
  EXPECT_THAT(why_not(fixture_plugin("bad_short_descriptor")),
              AllOf(HasSubstr("descriptor(0)"), HasSubstr("struct_size is"), HasSubstr("before study_json"),
                    HasSubstr("sizeof(dsat_descriptor)")));
}

TEST_F(BadPluginsTest, TheMemberThatIsMissingIsNamed) {
  EXPECT_THAT(why_not(fixture_plugin("bad_no_name")), AllOf(HasSubstr("descriptor(0)"), HasSubstr("name is NULL")));
  EXPECT_THAT(why_not(fixture_plugin("bad_empty_name")), AllOf(HasSubstr("test.bad: "), HasSubstr("name is empty")));
  EXPECT_THAT(run_with("bad_create_no_exit").reason,
              AllOf(StartsWith("plugin bad: create "), HasSubstr("on_trial_exited is NULL")));
}

TEST_F(BadPluginsTest, BrokenJsonOfADescriptorIsReportedWithItsPlace) {
  EXPECT_THAT(why_not(fixture_plugin("bad_options_text")),
              AllOf(HasSubstr("test.bad: options_json"), HasSubstr("1:4: ']'")));
}

TEST_F(BadPluginsTest, WhatAPluginWantsOfItsStudyIsCheckedWhenItIsLoaded) {
  EXPECT_THAT(why_not(fixture_plugin("bad_study_text")), AllOf(HasSubstr("test.bad: study_json"), HasSubstr("1:2: ")));
  EXPECT_THAT(why_not(fixture_plugin("bad_study_key")), HasSubstr("'max_trials' is neither"));
  EXPECT_THAT(why_not(fixture_plugin("bad_study_stage")), HasSubstr("zero_stages is no"));
  EXPECT_THAT(why_not(fixture_plugin("bad_study_count")), HasSubstr("profile_trials is no"));
}

TEST_F(BadPluginsTest, AnUndefinedSymbolIsNamed) {
  const std::string text = why_not(fixture_plugin("bad_undefined"));
  EXPECT_THAT(text, HasSubstr("undefined symbol: dsat_nobody_has_this"));
  EXPECT_THAT(text, HasSubstr("-z,defs"));
}

TEST_F(BadPluginsTest, WhatIsNoLibraryIsReported) {
  EXPECT_THAT(why_not(dir() / "libnone.so"), HasSubstr("no such file"));
  EXPECT_THAT(why_not(dir()), HasSubstr("not a file"));
  write_text(dir() / "libtext.so",
             "I am a text, and long enough to have had a header if I were a library of any kind.");
  EXPECT_THAT(why_not(dir() / "libtext.so"), HasSubstr("not a shared"));
  write_text(dir() / "libempty.so", "");
  EXPECT_THAT(why_not(dir() / "libempty.so"), HasSubstr("not a shared"));
  std::string whole = read_text(fixture_plugin("walker"));
  whole[18] ^= 1;  // the processor in its ELF header
  write_text(dir() / "libforeign.so", whole);
  EXPECT_THAT(why_not(dir() / "libforeign.so"), HasSubstr("not a shared library of this machine"));
  write_text(dir() / "libtorn.so", whole.substr(0, 400));
  why_not(dir() / "libtorn.so");
}

TEST_F(BadPluginsTest, ACreateThatFailsFailsTheStudyWithItsMessageOrTheLackOfOne) {
  EXPECT_EQ(run_with("bad_create_says").reason, "plugin bad: create: the moon is wrong");
  EXPECT_THAT(run_with("bad_create_silent").reason, HasSubstr("no message"));
  const StudyResult null = run_with("bad_create_null");
  EXPECT_EQ(null.status, StudyStatus::failed);
  EXPECT_THAT(null.reason, AllOf(HasSubstr("incomplete strategy"), HasSubstr("is NULL")));
}

// The profile and the baseline would be paid for in vain.
TEST_F(BadPluginsTest, OptionsThatASearcherRefusesAreRefusedBeforeAnythingRuns) {
  for (const Isolation isolation : {Isolation::none, Isolation::process}) {
    StudyOptions given = options("bad_create_says");
    given.isolation = isolation;
    given.plugin_host = DSAT_PLUGIN_HOST;
    const auto study = Study::create(given);
    ASSERT_FALSE(study.ok());
    EXPECT_EQ(study.status().message(), "plugin bad: create: the moon is wrong");
    EXPECT_EQ(study.status().code(), Status::Code::invalid) << "the plugin says that its options are wrong";
    EXPECT_FALSE(fs::exists(given.output_dir));
  }
  const auto silent = Study::create(options("bad_create_silent"));
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.status().code(), Status::Code::internal);
}

TEST_F(BadPluginsTest, ASearcherThatDiesInItsCreateIsRefusedAtOnce) {
  StudyOptions given = options("defective", {{"defect", "exit3_create"}});
  given.plugin_host = DSAT_PLUGIN_HOST;
  const auto study = Study::create(given);
  ASSERT_FALSE(study.ok());
  EXPECT_THAT(study.status().message(), AllOf(StartsWith("plugin defective: create: "), HasSubstr("exit status 3")));
  EXPECT_FALSE(fs::exists(given.output_dir));
}

TEST_F(BadPluginsTest, WhatDiesWhenItIsLoadedIsRefusedAlsoWhereItWasToRunHere) {
  PluginProcesses here = in_this_process();
  here.plugin_host = DSAT_PLUGIN_HOST;
  const auto described = describe_plugin(fixture_plugin("dies_when_loaded"), here);
  ASSERT_FALSE(described.ok());
  EXPECT_EQ(described.status().code(), Status::Code::internal);
  EXPECT_THAT(described.status().message(), AllOf(HasSubstr("libdies_when_loaded.so: "), HasSubstr("killed by")));
  const auto sound = describe_plugin(fixture_plugin("walker"), here);
  ASSERT_TRUE(sound.ok()) << sound.status().message();
  EXPECT_NE(sound->at(0).library, nullptr) << "it runs in this process";
}

TEST_F(BadPluginsTest, AnOpOutsideAnEventIsRefused) {
  EXPECT_THAT(run_with("bad_op_in_create").reason, HasSubstr("create_trial: an op"));
}

TEST_F(BadPluginsTest, AnEventThatFailsWithoutAMessageIsThePluginsDefect) {
  EXPECT_THAT(run_with("bad_silent").reason, AllOf(HasSubstr("plugin bad: start: "), HasSubstr("status 13")));
}

}  // namespace
}  // namespace dsat::host
