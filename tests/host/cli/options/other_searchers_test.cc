// Options of searchers that were not chosen: what the person who types one reads.
#include "options/other_searchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "commands/host_options.h"
#include "options/plugin_options.h"
#include "support/error_of.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

host::PluginInfo searcher(const std::string& name, const std::vector<std::string>& options) {
  host::PluginInfo info;
  info.kind = host::PluginKind::searcher;
  info.name = name;
  for (const std::string& option : options) info.options.push_back(Json{{"name", option}, {"type", "int"}});
  return info;
}

// What is answered where `chosen` is searched with.
std::string refusal(const host::PluginInfo& chosen, const std::vector<host::PluginInfo>& others,
                    const Tokens& arguments) {
  OptionSet set = tune_options();
  add_plugin_options(set, chosen, host::PluginInfo());
  explain_options_of(set, others);
  return error_of([&] { split(set, arguments, Grammar::command); });
}

TEST(OtherSearchers, AnOptionOfOneNamesIt) {
  EXPECT_THAT(refusal(searcher("walk", {}), {searcher("ladder", {"rungs"})}, {"--rungs", "3"}),
              AllOf(HasSubstr("option --rungs"), EndsWith("--searcher ladder")));
  EXPECT_THAT(
      refusal(searcher("walk", {}), {searcher("ladder", {"rungs"}), searcher("stairs", {"rungs"})}, {"--rungs=3"}),
      AllOf(HasSubstr("option --rungs"), HasSubstr("--searcher ladder "), EndsWith("--searcher stairs")));
}

TEST(OtherSearchers, TheChosenOnesOptionsAndTheProgramsStayWhatTheyAre) {
  EXPECT_EQ(refusal(searcher("walk", {"rungs"}), {searcher("ladder", {"rungs", "max-trials"})},
                    {"--rungs", "3", "--max-trials", "4"}),
            "no error");
  EXPECT_THAT(refusal(searcher("walk", {}), {searcher("ladder", {"rungs"})}, {"--frobnicate"}),
              AllOf(HasSubstr("--frobnicate"), HasSubstr("--help")));
}

}  // namespace
}  // namespace dsat::cli
