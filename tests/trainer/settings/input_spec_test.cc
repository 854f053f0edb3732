// What --input-spec takes and what it refuses.
// Errors repeat the entry that is wrong.
#include "settings/input_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

using ::testing::HasSubstr;

TEST(InputSpecTest, NamesTypeAndShapeOfEachInput) {
  const std::vector<InputSpec> specs = parse_input_spec("float:3x32x32,int<512>:64,float,int<2>:1");
  ASSERT_EQ(specs.size(), 4u);
  EXPECT_EQ(specs[0].limit, 0);
  EXPECT_EQ(specs[0].shape, (std::vector<int64_t>{3, 32, 32}));
  EXPECT_EQ(specs[1].limit, 512);
  EXPECT_EQ(specs[1].shape, std::vector<int64_t>{64});
  EXPECT_TRUE(specs[2].shape.empty());
  EXPECT_EQ(specs[3].limit, 2);
}

TEST(InputSpecTest, WhatIsNoSpecificationIsQuoted) {
  for (const char* text :
       {"", "double:3", "float:", "float:3x", "float:x3", "float:0", "float:-1", "int:64", "int<>:64", "int<0>:64",
        "int<5:64", "float:3,", "float:3,,float:3", "float:3 x 4", "float:99999999999999999999"}) {
    try {
      parse_input_spec(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("like float:3x32x32,int<512>:64")) << text;
    }
  }
}

}  // namespace
}  // namespace dsat::trainer
