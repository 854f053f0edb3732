// The place of a process among ranks that another launcher has started.
// Variables are set for one test and put back after it.
#include "settings/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "dsat/error.h"
#include "support/error_of.h"

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  static std::string error_of(int64_t ranks) {
    return dsat::error_of([&] { find_group(ranks); });
  }
};

TEST_F(EnvironmentTest, AloneItIsOneRank) {
  const Group group = find_group(0);
  EXPECT_EQ(group.world_size, 1);
  EXPECT_FALSE(group.rank.has_value());
}

TEST_F(EnvironmentTest, RanksAreStartedHereOnTheGivenPort) {
  set("MASTER_PORT", "2345");
  const Group group = find_group(4);
  EXPECT_EQ(group.world_size, 4);
  EXPECT_FALSE(group.rank.has_value());
  EXPECT_EQ(group.port, 2345);
}

TEST_F(EnvironmentTest, RanksThatAreStartedHereMeetHere) {
  set("MASTER_ADDR", "10.255.255.1");  // of another program in this shell
  EXPECT_EQ(find_group(2).address, Group().address);
}

TEST_F(EnvironmentTest, ARankIsPlacedByItsLauncher) {
  set("RANK", "1");
  set("WORLD_SIZE", "2");
  set("MASTER_ADDR", "10.0.0.1");
  set("MASTER_PORT", "2345");
  for (int64_t ranks : {0, 2}) {
    const Group group = find_group(ranks);
    EXPECT_EQ(group.rank, 1);
    EXPECT_EQ(group.world_size, 2);
    EXPECT_EQ(group.address, "10.0.0.1");
  }
}

TEST_F(EnvironmentTest, ContradictionsAreNamed) {
  set("RANK", "2");
  EXPECT_THAT(error_of(0), HasSubstr("WORLD_SIZE is not"));
  set("WORLD_SIZE", "2");
  EXPECT_THAT(error_of(0), AllOf(HasSubstr("RANK=2"), HasSubstr("WORLD_SIZE=2")));
  set("RANK", "0");
  EXPECT_THAT(error_of(0), HasSubstr("MASTER_PORT is not"));
  EXPECT_THAT(error_of(4), AllOf(HasSubstr("--ranks 4"), HasSubstr("WORLD_SIZE=2")));
  set("MASTER_PORT", "http");
  EXPECT_THAT(error_of(0), HasSubstr("MASTER_PORT=http: "));
  set("MASTER_PORT", "70000");
  EXPECT_THAT(error_of(0), HasSubstr("to 65535"));
}

TEST_F(EnvironmentTest, ALimitOfTheAddressSpaceThatLeavesNoRoomIsNamed) {
  require_address_space(std::nullopt, 700'000'000);
  require_address_space(1'300'000'000, 700'000'000);
  try {
    require_address_space(900'000'000, 700'000'000);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("ulimit -v"), HasSubstr("900 MB"), HasSubstr("700 MB"), HasSubstr("512 MB")));
  }
}

}  // namespace
}  // namespace dsat::trainer
