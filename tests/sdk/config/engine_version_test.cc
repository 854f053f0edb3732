// DeepSpeed's versions, and what is known of them.
#include "dsat/config/engine_version.h"

#include "dsat/config/json.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EngineVersion version(const char* text) { return parse_engine_version(text).value(); }

TEST(EngineVersions, AreReadAndOrdered) {
  EXPECT_EQ(version("0.12.3+git").patch, 3);
  EXPECT_TRUE(version("0.9.12") < version("0.12.4"));
  EXPECT_FALSE(version("1.0.0") < version("0.19.6"));
  for (const char* other : {"", "x", "0.14", "0.14.", "0.-1.2", "0.14.99999999999999999999"}) {
    EXPECT_EQ(parse_engine_version(other), std::nullopt) << other;
  }
}

const Json kFp32 = Json::object();

TEST(EngineVersions, ADefectCountsForItsVersionsAndStages) {
  EXPECT_THAT(engine_defects(version("0.17.6"), {1, 2, 3}, kFp32),
              ElementsAre(HasSubstr("DeepSpeed 0.17.6 may reduce")));
  EXPECT_THAT(engine_defects(version("0.18.2"), {2}, kFp32), ElementsAre(HasSubstr("0.18.3 or later")));
  EXPECT_THAT(engine_defects(version("0.18.6"), {2}, kFp32), ElementsAre(HasSubstr("slower at ZeRO 2")));
  EXPECT_THAT(engine_defects(version("0.18.2"), {0, 1, 3}, kFp32), IsEmpty());
  for (const char* sound : {"0.14.5", "0.17.5", "0.18.3", "0.18.7", "0.19.6"}) {
    EXPECT_THAT(engine_defects(version(sound), {0, 1, 2, 3}, kFp32), IsEmpty()) << sound;
  }
  const Json bf16{{"bf16", {{"enabled", true}}}};
  EXPECT_THAT(engine_defects(version("0.19.6"), {2}, bf16), ElementsAre(HasSubstr("more than once a step")));
  EXPECT_THAT(engine_defects(version("0.19.6"), {1, 3}, bf16), IsEmpty());
}

TEST(EngineVersions, RetiredKeysAreNamedEvenWhereTheyAreOff) {
  EXPECT_THAT(retired_keys(parse(R"({"amp": {"enabled": false}, "zero_optimization": {"mics_shard_size": -1}})", "c")),
              ElementsAre("amp", "zero_optimization.mics_shard_size"));
  EXPECT_THAT(retired_keys(parse(R"({"data_efficiency": {"curriculum_learning": {}}})", "c")), IsEmpty());
}

TEST(EngineVersions, AFractionIsNamedWhereNewerVersionsWantAWholeNumber) {
  const Json config = parse(R"({"fp16": {"min_loss_scale": 0.5, "hysteresis": 2.0, "loss_scale": 0.5}})", "c");
  EXPECT_THAT(refused_fractions({0, 17, 1}, config), ElementsAre("fp16.min_loss_scale"));
  EXPECT_THAT(refused_fractions({0, 17, 0}, config), IsEmpty());
}

}  // namespace
}  // namespace dsat::config
