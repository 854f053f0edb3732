// The versions that trained, as trials reported them.
#include "record/versions.h"

#include <gmock/gmock.h>

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Trials whose probes reported these versions of DeepSpeed; empty: no probe.
std::vector<Trial> trials(const std::vector<std::string>& versions) {
  std::vector<Trial> all(versions.size());
  for (size_t i = 0; i < versions.size(); ++i) {
    all[i].record.id = i;
    all[i].end.emplace().engine_version = versions[i];
    if (!versions[i].empty()) all[i].end->torch_version = "2.4.0";
  }
  return all;
}

TEST(Versions, AChangeIsWarnedOfOnce) {
  const std::vector<Trial> all = trials({"0.14.5", "", "0.14.5", "0.19.6", "0.19.6"});
  for (const uint64_t same : {0, 1, 2, 4}) EXPECT_THAT(warn_of_versions(all, same, {1, 2}), IsEmpty()) << same;
  EXPECT_THAT(warn_of_versions(all, 3, {1, 2}),
              ElementsAre(HasSubstr("DeepSpeed was 0.14.5 and is 0.19.6 since trial 3")));
}

TEST(Versions, TheFirstTrialShowsTheDefectsOfItsVersion) {
  const std::vector<Trial> all = trials({"0.18.0", "0.18.0"});
  EXPECT_THAT(warn_of_versions(all, 0, {1, 2}), ElementsAre(HasSubstr("wrongly at ZeRO 2")));
  EXPECT_THAT(warn_of_versions(all, 0, {1, 3}), IsEmpty());
  EXPECT_THAT(warn_of_versions(all, 1, {1, 2}), IsEmpty());
}

TEST(Versions, AFractionIsNamedWhereTheVersionRefusesIt) {
  std::vector<Trial> all = trials({"0.14.5", "0.19.6"});
  for (Trial& trial : all) trial.record.config = {{"fp16", {{"min_loss_scale", 0.5}}}};
  EXPECT_THAT(warn_of_versions(all, 0, {1}), IsEmpty());
  EXPECT_THAT(warn_of_versions(all, 1, {1}),
              ElementsAre(HasSubstr("and is 0.19.6"), HasSubstr("0.19.6 wants a whole number for 'fp16.min_loss_sc")));
}

TEST(Versions, TheLastOnesAreShownAndTheFirstDecides) {
  std::vector<Trial> all = trials({"", "0.14.5", "0.19.6+git", ""});
  all[2].end->driver_version = "580.95";
  EXPECT_EQ(versions_text(all), "DeepSpeed 0.19.6+git, torch 2.4.0, driver 580.95");
  EXPECT_EQ(engine_version_of(all)->minor, 14);
  EXPECT_EQ(versions_text(trials({"", ""})), "");
  EXPECT_EQ(engine_version_of({}), std::nullopt);
}

}  // namespace
}  // namespace dsat::host
